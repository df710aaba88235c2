"""TLS by ``ssl.SSLContext``."""

import asyncio
import shutil
import ssl
import subprocess

import pytest

from playfield.websocket import connect, sync


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is missing, so there is no certificate to test with")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=certificate)


MESSAGES = ["a", b"b" * 70_000, "c" * 300_000, ""]


def test_async(run, server, contexts):
    served, trusting = contexts

    async def main(url):
        async with connect(url, ssl=trusting) as connection:
            for message in MESSAGES:
                await connection.send(message)
            assert [await connection.recv() for _ in MESSAGES] == MESSAGES
            sent = [b"x" * 100_000 for _ in range(50)]

            async def send():
                for message in sent:
                    await connection.send(message)

            sender = asyncio.create_task(send())
            assert [await connection.recv() for _ in sent] == sent
            await sender
        assert connection.close_code == 1000
        with pytest.raises(ssl.SSLCertVerificationError):
            await connect(url)

    run(main(server(ssl=served)))


def test_sync(server, contexts):
    served, trusting = contexts
    url = server(ssl=served)
    with sync.connect(url, ssl=trusting) as connection:
        for message in MESSAGES:
            connection.send(message)
            assert connection.recv(timeout=10) == message
    assert connection.close_code == 1000
    with pytest.raises(ssl.SSLCertVerificationError):
        sync.connect(url)


def test_a_message_right_after_the_handshake(run, server, contexts):
    served, trusting = contexts

    async def greet(connection):
        await connection.send("hello")
        await connection.recv()

    async def main(url):
        async with connect(url, ssl=trusting) as connection:
            assert await asyncio.wait_for(connection.recv(), 10) == "hello"

    url = server(greet, ssl=served)
    for _ in range(5):
        run(main(url))
        with sync.connect(url, ssl=trusting) as connection:
            assert connection.recv(timeout=10) == "hello"

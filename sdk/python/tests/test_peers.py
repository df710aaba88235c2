"""Connecting to servers that are not nodes, or do not speak as one: the right error."""

import asyncio
import contextlib
import socket
import ssl
import threading

import pytest
from test_tls import make_certificate

import playfield
import playfield.sync


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    certificate, key = make_certificate(tmp_path_factory.mktemp("tls"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=certificate)


def web(sock):
    """A server of pages."""
    sock.recv(4096)
    sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


def mail(sock):
    sock.sendall(b"220 mail.example ESMTP\r\n")
    sock.recv(4096)


def leaves(sock):
    pass


def silent(sock):
    sock.recv(1)
    while sock.recv(4096):
        pass


def refusal(url, kind, **settings):
    """What both clients say."""

    async def main():
        await playfield.connect(url, **settings)

    found = []
    for connect in [lambda: asyncio.run(main()), lambda: playfield.sync.connect(url, **settings)]:
        with pytest.raises(kind) as refused:
            connect()
        assert isinstance(refused.value, OSError)
        found.append(str(refused.value))
    assert found[0] == found[1] and "\n" not in found[0] and found[0].startswith(url)
    return found[0]


@pytest.mark.parametrize("peer", [web, mail, leaves])
@pytest.mark.parametrize("scheme", ["tcp", "ws", "tls", "wss"])
def test_a_server_that_is_no_node(script, contexts, peer, scheme):
    url = script(peer).replace("ws://", f"{scheme}://").rstrip("/")
    settings = {"ssl": contexts[1]} if scheme in ("tls", "wss") else {}
    text = refusal(url, playfield.ConnectionFailed, **settings)
    assert "did not answer as a Playfield node does" in text
    other = {"tcp": "with TLS it is tls", "ws": "with TLS it is wss"}.get(
        scheme, "without TLS it is"
    )
    assert other in text


def test_a_server_that_echoes(server):
    url = server().rstrip("/")
    assert "can't be read" in refusal(url, playfield.ConnectionFailed)


@pytest.mark.parametrize("scheme", ["tcp", "wss"])
def test_a_silent_server(script, contexts, scheme):
    url = script(silent).replace("ws://", f"{scheme}://").rstrip("/")
    settings = {"ssl": contexts[1]} if scheme == "wss" else {}
    assert "did not answer in 0.1 s" in refusal(url, TimeoutError, open_timeout=0.1, **settings)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_tls_spoken_to_in_plain(script, contexts, scheme):
    def of_tls(sock):
        with contextlib.suppress(ssl.SSLError):
            contexts[0].wrap_socket(sock, server_side=True)

    url = script(of_tls).replace("ws://", f"{scheme}://").rstrip("/")
    assert "with TLS it is" in refusal(url, playfield.ConnectionFailed)


def test_nobody_there():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for scheme in ["tcp", "ws"]:
        with pytest.raises(ConnectionRefusedError):
            playfield.sync.connect(f"{scheme}://127.0.0.1:{port}")


def test_a_token_that_does_not_come_keeps_nothing_waiting(example):
    url, going = f"tcp://{example('cards')}", threading.Event()

    async def main():
        with pytest.raises(TimeoutError, match="there was no token in 0.05 s"):
            await playfield.connect(url, token=going.wait, open_timeout=0.05)

    # `asyncio.run` waits for its own threads.
    asyncio.run(main())
    going.set()


@pytest.mark.parametrize(
    ("token", "error", "text"),
    [
        (lambda: 1 / 0, ZeroDivisionError, "division"),
        (lambda: 7, TypeError, "a token is a str or bytes, or a function that returns one, not 7"),
        (lambda: next(iter(())), RuntimeError, "StopIteration"),
        (exit, RuntimeError, "SystemExit"),
        (7, TypeError, "not 7"),
    ],
)
def test_a_token_that_can_not_be_had(example, token, error, text):
    url = f"tcp://{example('cards')}"

    async def main():
        await playfield.connect(url, token=token)

    for connect in [lambda: asyncio.run(main()), lambda: playfield.sync.connect(url, token=token)]:
        with pytest.raises(error, match=text):
            connect()


def test_a_canceled_token_is_an_error(run, example):
    async def canceled():
        raise asyncio.CancelledError

    async def main():
        with pytest.raises(RuntimeError, match="the function for the token was canceled"):
            await playfield.connect(f"tcp://{example('cards')}", token=canceled)

    run(main())

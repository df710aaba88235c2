"""TLS by rustls, which is the default, and by ``ssl.SSLContext``."""

import asyncio
import contextlib
import fcntl
import os
import random
import shutil
import socket
import ssl
import subprocess
import termios
import threading

import pytest
from certificates import Authority, make_certificate
from conftest import read_all, read_head, upgrade

from playfield.websocket import (
    ConnectionClosedError,
    ConnectionClosedOK,
    InvalidMessage,
    ProxyError,
    _attendant,
    connect,
    sync,
)
from playfield._playfield import TlsClient

MESSAGES = ["a", b"b" * 70_000, "c" * 300_000, ""]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def served_with(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture(scope="module")
def served(authority):
    """The context of a server whose certificate is for localhost."""
    return served_with(authority.issue("localhost"))


@pytest.fixture(params=["rustls", "ssl"])
def trusting(request, authority, monkeypatch):
    """The options that make a client trust the authority."""
    if request.param == "ssl":
        return {"ssl": ssl.create_default_context(cafile=authority.certificate)}
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    return {}


@pytest.fixture(params=["rustls", "ssl"])
def default(request):
    """The options of a client that trusts the system's certificates."""
    return {"ssl": ssl.create_default_context()} if request.param == "ssl" else {}


@pytest.fixture
def secure(script):
    """As ``script``, for localhost and with TLS: the server's side of the handshake is ``wrap``."""

    def start(function):
        return script(function).replace("ws://127.0.0.1", "wss://localhost")

    return start


def test_async(run, server, served, trusting):
    async def main(url):
        async with connect(url, **trusting) as connection:
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

    run(main(server(ssl=served)))


def test_sync(server, served, trusting):
    with sync.connect(server(ssl=served), **trusting) as connection:
        for message in MESSAGES:
            connection.send(message)
            assert connection.recv(timeout=10) == message
        connection.send_many(["x" * 1000] * 1000)
        received = 0
        while received < 1000:
            received += len(connection.recv_many(timeout=10))
    assert connection.close_code == 1000


def test_tls_1_2(run, server, authority, trusting):
    served = served_with(authority.issue("older"))
    served.maximum_version = ssl.TLSVersion.TLSv1_2

    async def main(url):
        async with connect(url, **trusting) as connection:
            tls = connection.transport.get_extra_info("ssl_object")
            assert tls.version() == "TLSv1.2"
            assert tls.cipher()[0].startswith("ECDHE-ECDSA-AES") and tls.cipher()[2] >= 128
            await connection.send(b"x" * 100_000)
            assert await connection.recv() == b"x" * 100_000

    run(main(server(ssl=served)))


def test_a_message_right_after_the_handshake(run, server, served, trusting):
    async def greet(connection):
        await connection.send("hello")
        await connection.recv()

    async def main(url):
        async with connect(url, **trusting) as connection:
            assert await asyncio.wait_for(connection.recv(), 10) == "hello"

    url = server(greet, ssl=served)
    for _ in range(5):
        run(main(url))
        with sync.connect(url, **trusting) as connection:
            assert connection.recv(timeout=10) == "hello"


def test_the_thread_that_answers_pings_is_no_receiver(server, served, trusting, monkeypatch):
    monkeypatch.setattr(_attendant, "REST", 0.0)

    async def echo(connection):
        async for message in connection:
            await connection.ping()
            await connection.send(message)

    url = server(echo, ssl=served)
    with sync.connect(url, **trusting, compression=None) as connection:
        for number in range(500):
            message = str(number) * 500
            connection.send(message)
            assert connection.recv(timeout=10) == message


def test_a_thread_receives_while_others_send(server, served, trusting):
    sent = [bytes([number]) * 20_000 for number in range(100)]
    with sync.connect(server(ssl=served), **trusting, compression=None) as connection:

        def send(messages):
            for message in messages:
                connection.send(message)

        threads = [threading.Thread(target=send, args=(sent[part::2],)) for part in (0, 1)]
        for thread in threads:
            thread.start()
        assert sorted(connection.recv(timeout=10) for _ in sent) == sent
        for thread in threads:
            thread.join()


# Whom a client trusts.


def refused(run, url, options):
    """The errors of both flavors, for a certificate that is not to be accepted."""
    errors = []
    with pytest.raises(ssl.SSLCertVerificationError) as error:
        sync.connect(url, **options)
    errors.append(error.value)

    async def main():
        await connect(url, **options)

    with pytest.raises(ssl.SSLCertVerificationError) as error:
        run(main())
    errors.append(error.value)
    for error in errors:
        assert error.reason == "CERTIFICATE_VERIFY_FAILED"
        assert error.library == "SSL" and error.verify_message in str(error)
    return {error.verify_code for error in errors}


def test_an_unknown_authority(run, server, served, default):
    # OpenSSL distinguishes whether the chain ends.
    assert refused(run, server(ssl=served), default) <= {19, 20}


def test_a_certificate_for_another_host(run, server, authority, trusting):
    url = server(ssl=served_with(authority.issue("other", "DNS:example.com,DNS:*.example.org")))
    assert refused(run, url, trusting) == {62}
    assert refused(run, url.replace("localhost", "127.0.0.1"), trusting) == {64}
    for name in ("example.com", "a.example.org"):
        with sync.connect(url, **trusting, server_hostname=name) as connection:
            connection.send("x")
            assert connection.recv(timeout=10) == "x"
    with pytest.raises(ssl.SSLCertVerificationError):
        sync.connect(url, **trusting, server_hostname="a.b.example.org")


def test_a_certificate_for_an_address(server, authority, trusting):
    url = server(ssl=served_with(authority.issue("address", "IP:127.0.0.1")))
    with sync.connect(url.replace("localhost", "127.0.0.1"), **trusting) as connection:
        connection.send("x")
        assert connection.recv(timeout=10) == "x"


def test_a_certificate_out_of_its_period(run, server, authority, trusting):
    past, future = ("20200101000000Z", "20200201000000Z"), ("20980101000000Z", "20990101000000Z")
    expired = authority.issue("expired", period=past)
    assert refused(run, server(ssl=served_with(expired)), trusting) == {10}
    early = authority.issue("early", period=future)
    assert refused(run, server(ssl=served_with(early)), trusting) == {9}


def test_a_root_that_signs_itself(run, server, tmp_path, monkeypatch):
    """Its certificate says that it may sign others: ``openssl req -x509`` makes such ones."""
    certificate = make_certificate(tmp_path)
    url = server(ssl=served_with(certificate))
    assert refused(run, url, {}) <= {1, 20}
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    with sync.connect(url) as connection:
        connection.send("x")
        assert connection.recv(timeout=10) == "x"
    assert refused(run, url.replace("localhost", "127.0.0.1"), {}) == {64}


def test_roots_that_change_are_read_again(run, server, served, authority, tmp_path, monkeypatch):
    url = server(ssl=served)
    roots = tmp_path / "roots.pem"
    other = make_certificate(tmp_path)[0]
    shutil.copy(other, roots)
    os.utime(roots, (1, 1))
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    assert refused(run, url, {}) == {20}
    shutil.copy(authority.certificate, roots)
    with sync.connect(url) as connection:
        connection.send("x")
        assert connection.recv(timeout=10) == "x"


def test_keys_are_logged_where_the_environment_says(server, served, authority, tmp_path, monkeypatch):
    # Another path is another setup, which reads the environment.
    roots, log = tmp_path / "roots.pem", tmp_path / "keys"
    shutil.copy(authority.certificate, roots)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    monkeypatch.setenv("SSLKEYLOGFILE", str(log))
    sync.connect(server(ssl=served)).close()
    assert "CLIENT_TRAFFIC_SECRET_0 " in log.read_text()


def test_a_folder_of_roots(server, served, authority, tmp_path, monkeypatch):
    shutil.copy(authority.certificate, tmp_path / "authority.pem")
    subprocess.run(["openssl", "rehash", str(tmp_path)], check=True)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with sync.connect(server(ssl=served)) as connection:
        connection.send("x")
        assert connection.recv(timeout=10) == "x"


def test_no_roots(server, served, tmp_path, monkeypatch):
    (tmp_path / "empty").touch()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "empty"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with pytest.raises(ssl.SSLError, match="set SSL_CERT_FILE"):
        sync.connect(server(ssl=served))


def test_a_name_that_is_none(server, served):
    with pytest.raises(ValueError, match="can't be named in TLS"):
        sync.connect(server(ssl=served), server_hostname="a b")


# What a program asks.


def test_what_tls_has_agreed_on(run, server, served, authority, trusting):
    certificate = ssl.PEM_cert_to_DER_cert((authority.folder / "localhost.pem").read_text())

    async def main(url):
        async with connect(url, **trusting) as connection:
            ask = connection.transport.get_extra_info
            tls = ask("ssl_object")
            assert tls.version() == "TLSv1.3"
            assert tls.getpeercert(binary_form=True) == certificate
            assert tls.selected_alpn_protocol() is None
            assert tls.server_hostname == "localhost"
            name, version, bits = ask("cipher")
            assert name.startswith("TLS_AES_") and version == "TLSv1.3" and bits in (128, 256)
            assert ask("sslcontext") is trusting.get("ssl")
            if trusting:
                assert ask("peercert")["subject"] == ((("commonName", "localhost"),),)
            else:
                assert ask("peercert", 1) == 1
                with pytest.raises(ValueError, match="create_default_context"):
                    tls.getpeercert()

    run(main(server(ssl=served)))


def test_connections_resume_tls(run, server, authority, monkeypatch):
    # Its tickets are not those of another test.
    served = served_with(authority.issue("resuming"))
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    seen = []

    async def echo(connection):
        seen.append(connection.transport.get_extra_info("ssl_object").session_reused)
        async for message in connection:
            await connection.send(message)

    async def main(url):
        async with connect(url) as connection:
            await connection.send("x")
            # The tickets come before it.
            assert await connection.recv() == "x"
            return connection.transport.get_extra_info("ssl_object").session_reused

    url = server(echo, ssl=served)
    resumed = [run(main(url)) for _ in range(3)]
    assert (resumed, seen) == ([False, True, True], [False, True, True])
    with sync.connect(url) as connection:
        connection.send("x")
        assert connection.recv(timeout=10) == "x"
    assert seen[3]


# Servers that are wrong, slow or gone.


def each(run, url, options, use, expected):
    """The errors of both flavors, of an expected kind; one of another kind fails the test. ``use``
    takes what sends, receives and so on, and awaits."""
    errors = []

    async def plain(value):
        return value

    async def blocking():
        connection = sync.connect(url, **options)

        class Awaited:
            def __getattr__(self, name):
                return lambda *arguments: plain(getattr(connection, name)(*arguments))

        await use(Awaited())

    async def awaiting():
        await use(await connect(url, **options))

    for main in (awaiting, blocking):
        with pytest.raises(expected) as error:
            run(main()) if main is awaiting else asyncio.run(main())
        errors.append(error.value)
    return errors


async def receive_all(connection):
    for _ in range(100):
        await connection.recv()


def test_an_error_of_tls_is_the_cause(run, secure, served, trusting):
    def spoil(sock):
        with served.wrap_socket(sock, server_side=True) as tls:
            upgrade(tls)
            tls.sendall(b"\x81\x01a")
            os.write(tls.fileno(), b"\x17\x03\x03\x00\x20" + bytes(32))
            with contextlib.suppress(ssl.SSLError):
                read_all(tls)

    url = secure(spoil)
    got = []

    async def use(connection):
        got.append(await connection.recv())
        for _ in range(2):
            with pytest.raises(ConnectionClosedError) as error:
                await connection.recv()
            assert isinstance(error.value.__cause__, ssl.SSLError)
            assert "MAC" in error.value.__cause__.reason
        await connection.send("x")

    each(run, url, trusting, use, ConnectionClosedError)
    assert got == ["a", "a"]


@pytest.mark.parametrize("notified", [False, True], ids=["cut", "close_notify"])
def test_a_server_that_ends_without_a_close_frame(run, secure, served, trusting, notified):
    heard = threading.Semaphore(0)

    def end(sock):
        with served.wrap_socket(sock, server_side=True) as tls:
            upgrade(tls)
            tls.sendall(b"\x81\x01a\x81\x01b")
            if not notified:
                return
            with contextlib.suppress(OSError):
                # It waits for the client's.
                tls.unwrap()
                heard.release()

    got = []

    async def use(connection):
        got.append([await connection.recv(), await connection.recv()])
        await connection.recv()

    for error in each(run, secure(end), trusting, use, ConnectionClosedError):
        assert error.rcvd is None
    assert got == [["a", "b"]] * 2
    if notified and not trusting:
        assert all(heard.acquire(timeout=10) for _ in range(2))


def test_a_client_says_close_notify(secure, served, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    heard = threading.Event()

    def take(sock):
        with served.wrap_socket(sock, server_side=True, suppress_ragged_eofs=False) as tls:
            upgrade(tls)
            tls.recv(100)
            tls.sendall(b"\x88\x02\x03\xe8")
            tls.unwrap()
            heard.set()

    sync.connect(secure(take)).close()
    assert heard.wait(10)


def test_a_server_without_tls(run, server, secure):
    def answer(sock):
        sock.recv(10)
        sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        read_all(sock)

    for error in each(run, secure(answer), {}, receive_all, ssl.SSLError):
        assert error.reason == "WRONG_VERSION_NUMBER"


def test_a_server_that_ends_the_handshake(run, secure, trusting):
    # It is reset if it has left something unread.
    expected = (ssl.SSLEOFError, ConnectionResetError)
    each(run, secure(lambda sock: sock.recv(10)), trusting, receive_all, expected)


def test_a_server_that_is_silent(run, secure, trusting):
    url = secure(lambda sock: read_all(sock))
    each(run, url, {**trusting, "open_timeout": 0.1}, receive_all, TimeoutError)


def test_a_server_that_is_silent_after_the_handshake(run, secure, served, trusting):
    def fall_silent(sock):
        with served.wrap_socket(sock, server_side=True) as tls:
            read_all(tls)

    options = {**trusting, "open_timeout": 0.2}
    each(run, secure(fall_silent), options, receive_all, TimeoutError)


def test_a_server_that_only_has_older_ciphers(run, secure, authority):
    older = served_with(authority.issue("older-ciphers"))
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    older.set_ciphers("ECDHE-ECDSA-AES128-SHA256")

    def refuse(sock):
        with contextlib.suppress(ssl.SSLError):
            older.wrap_socket(sock, server_side=True)

    for error in each(run, secure(refuse), {}, receive_all, ssl.SSLError):
        assert "give ssl=ssl.create_default_context()" in str(error)


def test_a_long_handshake_message_is_refused(run, secure):
    """Records of a handshake message that does not end."""

    def flood(sock):
        sock.recv(100)
        with contextlib.suppress(OSError):
            # A ServerHello of 65,535 bytes, and more in fragments of one byte.
            sock.sendall(b"\x16\x03\x03\x00\x04\x02\x00\xff\xff")
            for _ in range(2_000_000):
                sock.sendall(b"\x16\x03\x03\x00\x01\x00" * 1000)

    each(run, secure(flood), {}, receive_all, (ssl.SSLError, ConnectionError))


def passing(url, change):
    """A script's function: it passes what comes to the server, and what that sends, chunk by chunk,
    as ``change`` says; ``None`` ends the connection."""
    port = int(url.rstrip("/").rpartition(":")[2])

    def function(sock):
        with socket.create_connection(("127.0.0.1", port)) as to:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def forth():
                with contextlib.suppress(OSError):
                    while data := sock.recv(65536):
                        to.sendall(data)
                    to.shutdown(socket.SHUT_WR)

            thread = threading.Thread(target=forth)
            thread.start()
            with contextlib.suppress(OSError):
                while data := to.recv(65536):
                    for part in change(data):
                        if part is None:
                            break
                        sock.sendall(part)
                    else:
                        continue
                    break
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            thread.join()

    return function


def test_records_in_pieces(run, server, secure, served, trusting):
    chance = random.Random(7)

    def cut(data):
        while data:
            size = chance.choice([1, 2, 5, 100, 3000])
            yield data[:size]
            data = data[size:]

    messages = ["x", b"y" * 50_000, "", "z" * 20_000]
    got = []

    async def use(connection):
        for message in messages:
            await connection.send(message)
        got.append([await connection.recv() for _ in messages])
        await connection.close()
        await connection.recv()

    url = secure(passing(server(ssl=served), cut))
    each(run, url, {**trusting, "compression": None}, use, ConnectionClosedOK)
    assert got == [messages, messages]


def test_records_that_are_changed(run, server, secure, served, trusting):
    """A byte is changed somewhere, and what follows is cut: each ends with an error of its kind."""
    chance = random.Random(11)
    place = 0

    def spoil(data):
        nonlocal place
        if place >= len(data):
            place -= len(data)
            yield data
            return
        changed = bytearray(data)
        changed[place] ^= 1 << chance.randrange(8)
        yield bytes(changed)
        yield None

    async def use(connection):
        for _ in range(20):
            await connection.send("x" * 50)
            assert await connection.recv() == "x" * 50

    url = secure(passing(server(ssl=served), spoil))
    kinds = set()
    options = {**trusting, "compression": None, "ping_interval": None}
    for number in range(25):
        for main in ("sync", "async"):
            # A handshake that resumes another one is shorter.
            place = (number * 97) % (2400 if trusting else 1400)
            with pytest.raises((OSError, ConnectionClosedError, InvalidMessage)) as error:
                if main == "sync":
                    with sync.connect(url, **options) as connection:
                        for _ in range(20):
                            connection.send("x" * 50)
                            assert connection.recv(timeout=10) == "x" * 50
                else:

                    async def awaiting():
                        async with connect(url, **options) as connection:
                            await use(connection)

                    run(awaiting())
            assert not isinstance(error.value, TimeoutError)
            kinds.add(type(error.value))
    assert len(kinds) > 1


# Proxies.


@pytest.mark.parametrize("around", [False, True], ids=["http", "https"])
def test_tls_through_a_proxy(run, server, proxy, served, trusting, around):
    options = {**trusting, "proxy": proxy(served if around else None)}
    if around and trusting:
        options["proxy_ssl"] = trusting["ssl"]
    got = []

    async def use(connection):
        for message in MESSAGES:
            await connection.send(message)
            got.append(await connection.recv())
        await connection.close()
        await connection.recv()

    each(run, server(ssl=served), options, use, ConnectionClosedOK)
    assert got == MESSAGES * 2


@pytest.mark.parametrize("secured", [False, True], ids=["ws", "wss"])
@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_through_a_socks_proxy(run, server, socks_proxy, served, trusting, secured, scheme):
    asked = []
    proxy = socks_proxy(asked, ("ann", "an apple"))
    options = {"proxy": proxy.replace("socks5://", f"{scheme}://ann:an%20apple@")}
    if secured:
        options |= trusting
    got = []

    async def use(connection):
        for message in MESSAGES:
            await connection.send(message)
            got.append(await connection.recv())
        await connection.close()
        await connection.recv()

    url = server(ssl=served) if secured else server()
    each(run, url, options, use, ConnectionClosedOK)
    assert got == MESSAGES * 2
    # Who resolves the name.
    port = int(url.rstrip("/").rpartition(":")[2])
    hosts = {"localhost"} if scheme == "socks5h" else {"127.0.0.1", "::1"}
    assert len(asked) == 2 and {host for host, _ in asked} <= hosts
    assert {port for _, port in asked} == {port}


def test_a_socks_proxy_that_refuses(run, server, socks_proxy, served, trusting):
    proxy, url = socks_proxy([], ("ann", "apple")), server(ssl=served)
    for error in each(run, url, {**trusting, "proxy": proxy}, receive_all, ProxyError):
        assert error.__cause__ is not None
    options = {**trusting, "proxy": socks_proxy([])}
    # Nothing listens there any more.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = f"wss://127.0.0.1:{listener.getsockname()[1]}/"
    each(run, gone, options, receive_all, ProxyError)


# Errors that do not depend on how TCP cuts what the server sends.


class Wire:
    """A handshake of a ``TlsClient`` with a server in memory."""

    def __init__(self, context, authority):
        self.client = TlsClient("localhost", str(authority.certificate), None)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def answer(self):
        """What the server sends to what the client has sent."""
        self.incoming.write(self.client.outgoing())
        with contextlib.suppress(ssl.SSLError):
            self.server.do_handshake()
        return self.outgoing.read()

    def complete(self):
        while not self.client.handshake():
            self.client.feed(self.answer())
        return self.answer()

    def taken(self, chunks):
        """What a program sees of these chunks, and then of the end."""
        plain = b""
        try:
            for chunk in chunks:
                self.client.feed(chunk)
                while (part := self.client.read()) is not None:
                    if not part:
                        return plain, "the end"
                    plain += part
        except ssl.SSLError as error:
            return plain, type(error), error.reason, str(error)
        return plain, "more"


def spoiled(wire):
    """The alert of a server that can't decrypt."""
    wire.incoming.write(b"\x17\x03\x03\x00\x20" + bytes(32))
    with contextlib.suppress(ssl.SSLError):
        wire.server.read()
    return wire.outgoing.read()


def half_a_response_and_an_alert(wire):
    # What comes first are tickets to resume the TLS session.
    wire.client.feed(wire.complete())
    wire.server.write(b"HTTP/1.1 101 Swit")
    return wire.outgoing.read() + spoiled(wire)


def half_a_response_and_the_end(wire):
    # What comes first are tickets to resume the TLS session.
    wire.client.feed(wire.complete())
    wire.server.write(b"HTTP/1.1 101 Swit")
    with contextlib.suppress(ssl.SSLWantReadError):
        wire.server.unwrap()
    return wire.outgoing.read()


def half_a_response_and_plaintext(wire):
    # What comes first are tickets to resume the TLS session.
    wire.client.feed(wire.complete())
    wire.server.write(b"HTTP/1.1 101 Swit")
    return wire.outgoing.read() + b"HTTP/1.1 400 Bad Request\r\n\r\n"


def no_tls(wire):
    wire.client.outgoing()
    return b"HTTP/1.1 400 Bad Request\r\n\r\n"


ENDS = {
    "refused": ("older", Wire.answer, (b"", ssl.SSLError, "ALERT")),
    "no certificate": ("asks", Wire.complete, (b"", ssl.SSLError, "ALERT")),
    "no certificate, 1.2": ("asks, 1.2", None, (b"", ssl.SSLError, "ALERT")),
    "alert": ("served", half_a_response_and_an_alert, (b"HTTP/1.1 101 Swit", ssl.SSLError, "ALERT")),
    "end": ("served", half_a_response_and_the_end, (b"HTTP/1.1 101 Swit", "the end")),
    "no longer TLS": (
        "served",
        half_a_response_and_plaintext,
        (b"HTTP/1.1 101 Swit", ssl.SSLError, "WRONG_VERSION_NUMBER"),
    ),
    "no TLS": ("served", no_tls, (b"", ssl.SSLError, "WRONG_VERSION_NUMBER")),
}


@pytest.fixture(scope="module")
def contexts(authority):
    """Servers, by what they want."""
    contexts = {name: served_with(authority.issue("wire")) for name in ("served", "asks")}
    contexts["asks, 1.2"] = served_with(authority.issue("wire"))
    for name in ("asks", "asks, 1.2"):
        contexts[name].verify_mode = ssl.CERT_REQUIRED
        contexts[name].load_verify_locations(authority.certificate)
    contexts["asks, 1.2"].maximum_version = ssl.TLSVersion.TLSv1_2
    contexts["older"] = served_with(authority.issue("wire"))
    contexts["older"].maximum_version = ssl.TLSVersion.TLSv1_2
    contexts["older"].set_ciphers("ECDHE-ECDSA-AES128-SHA256")
    return contexts


@pytest.mark.parametrize("kind", ENDS)
def test_an_end_is_the_same_wherever_it_is_cut(contexts, authority, kind):
    context, prepare, expected = ENDS[kind]

    def last(wire):
        if prepare is not None:
            return prepare(wire)
        wire.client.feed(wire.answer())
        return wire.answer()

    outcomes, place, length = set(), 0, 1
    while place <= length:
        wire = Wire(contexts[context], authority)
        data = last(wire)
        outcomes.add(wire.taken([data[:place], data[place:]]))
        place, length = place + 1, len(data)
    wire = Wire(contexts[context], authority)
    outcomes.add(wire.taken([bytes([byte]) for byte in last(wire)]))
    assert len(outcomes) == 1 and length > 6, outcomes
    (outcome,) = outcomes
    assert outcome[: len(expected)] == expected
    if kind == "no longer TLS":
        assert "does not answer in TLS" not in outcome[3] and "it was before" in outcome[3]
    if kind == "no TLS":
        assert "the server does not answer in TLS" in outcome[3]


@pytest.mark.parametrize("parts", [1, 2])
def test_an_alert_within_the_response(run, secure, contexts, authority, trusting, parts):
    def answer(sock):
        wire = Wire(contexts["served"], authority)
        while True:
            try:
                wire.server.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(wire.outgoing.read())
                wire.incoming.write(sock.recv(65536))
        sock.sendall(wire.outgoing.read())
        wire.server.write(b"HTTP/1.1 101 Swit")
        data = wire.outgoing.read()
        # The request.
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                wire.server.read()
                break
            wire.incoming.write(sock.recv(65536))
        sent = [data + spoiled(wire)] if parts == 1 else [data, spoiled(wire)]
        for part in sent:
            sock.sendall(part)
        read_all(sock)

    for error in each(run, secure(answer), trusting, receive_all, ssl.SSLError):
        assert "ALERT" in error.reason


@pytest.mark.parametrize("version", ["asks", "asks, 1.2"])
def test_a_server_that_wants_a_certificate(run, secure, contexts, trusting, version):
    """It ends the connection after its alert, also while the client still sends."""

    def refuse(sock):
        with contextlib.suppress(OSError):
            contexts[version].wrap_socket(sock, server_side=True)

    for _ in range(20):
        for error in each(run, secure(refuse), trusting, receive_all, OSError):
            assert isinstance(error, ssl.SSLError) and "ALERT" in error.reason, repr(error)


# Keys that the server renews.


class Typing:
    """``openssl s_server``, which sends what is typed, and says what it receives."""

    def __init__(self, certificate, key):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
        self.process = subprocess.Popen(
            ["openssl", "s_server", "-accept", f"127.0.0.1:{self.port}",
             "-cert", certificate, "-key", key],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.until(b"ACCEPT")

    def type(self, text):
        """Returns once it was read."""
        os.write(self.process.stdin.fileno(), text)
        while any(fcntl.ioctl(self.process.stdin.fileno(), termios.FIONREAD, bytes(4))):
            threading.Event().wait(0.001)

    def take(self, count):
        said = b""
        while len(said) < count:
            part = os.read(self.process.stdout.fileno(), count - len(said))
            assert part, said
            said += part
        return said

    def until(self, text):
        said = b""
        while not said.endswith(text):
            said += self.take(1)
        return said

    def upgrade(self):
        self.until(b"GET / HTTP/1.1\r\n")
        head = self.until(b"\r\n\r\n")

        class Typed:
            def recv(self, count):
                nonlocal head
                part, head = head[:count], head[count:]
                return part

        typed = Typed()
        # A line that begins with S would be a command; it is the first of what is read that counts.
        typed.sendall = self.type
        upgrade(typed)

    def message(self):
        """A short message of the client."""
        self.until(b"\x81")
        length = self.take(1)[0] - 128
        mask, payload = self.take(4), self.take(length)
        return bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload))


@pytest.mark.parametrize("flavor", ["sync", "async"])
def test_keys_that_the_server_renews(run, authority, monkeypatch, flavor):
    """The client must renew its own, before it sends more."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    typing = Typing(*authority.issue("renewing"))

    def serve():
        typing.upgrade()
        for text in (b"1", b"2"):
            # The server renews its keys, and wants new ones.
            typing.type(b"K\n")
            typing.type(b"\x81\x01" + text)
            heard.append(typing.message())

    async def main():
        connection = await connect(url, compression=None)
        for _ in range(2):
            await connection.send("got " + await connection.recv())
        await asyncio.get_running_loop().run_in_executor(None, thread.join)
        connection.abort()

    heard = []
    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    url = f"wss://localhost:{typing.port}/"
    try:
        if flavor == "async":
            run(main())
        else:
            connection = sync.connect(url, compression=None)
            for _ in range(2):
                connection.send("got " + connection.recv(timeout=10))
            thread.join(20)
            connection.abort()
        assert heard == [b"got 1", b"got 2"]
    finally:
        typing.process.kill()
        typing.process.communicate()

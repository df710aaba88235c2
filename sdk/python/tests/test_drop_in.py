"""Programs written for `websockets`, with the import replaced."""

import os
import socket
import subprocess
import sys

import pytest
from conftest import ROOT, read_head, upgrade

import playfield.websocket as websockets
from playfield.websocket import InvalidStatus, SecurityError, State
from playfield.websocket.asyncio.client import connect
from playfield.websocket.sync.client import ClientConnection, reconnect
from playfield.websocket.sync.client import connect as connect_sync
from playfield.websocket.uri import parse_uri

FLAVORS = ["asyncio", "sync"]


class OwnOrigin:
    """As the SDK of OpenAI does it: a token stays on its origin."""

    def process_redirect(self, exc):
        found = super().process_redirect(exc)
        if isinstance(found, str):
            here, there = parse_uri(self.uri), parse_uri(found)
            if (here.secure, here.host, here.port) != (there.secure, there.host, there.port):
                return SecurityError("not to another origin")
        return found


class OwnOriginConnect(OwnOrigin, connect):
    pass


class OwnOriginReconnect(OwnOrigin, reconnect):
    pass


def use(flavor, run, uri, made=None, **options):
    """Connects, and returns the server's first message."""
    if flavor == "sync":
        with (made or reconnect)(uri, **options) as connection:
            return connection.recv()

    async def main():
        async with (made or connect)(uri, **options) as connection:
            return await connection.recv()

    return run(main())


@pytest.fixture
def redirecting(script):
    """A server that redirects to a URI."""

    def start(uri):
        def redirect(sock):
            read_head(sock)
            head = f"HTTP/1.1 302 Found\r\nLocation: {uri}\r\nContent-Length: 0\r\n\r\n"
            sock.sendall(head.encode())

        return script(redirect)

    return start


@pytest.fixture
def telling(script):
    """A server that sends the head of its request."""

    def tell(sock):
        head = upgrade(sock).encode()
        sock.sendall(b"\x81\x7e" + len(head).to_bytes(2, "big") + head)

    return script(tell)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_subclass_decides_where_a_redirect_leads(run, redirecting, telling, flavor):
    own = OwnOriginReconnect if flavor == "sync" else OwnOriginConnect
    url = redirecting(telling + "there")
    assert "/there" in use(flavor, run, url)
    with pytest.raises(SecurityError, match="not to another origin") as error:
        use(flavor, run, url, own)
    assert isinstance(error.value.__cause__, InvalidStatus)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_subclass_may_change_the_headers_on_the_way(run, redirecting, telling, flavor):
    class Tokens:
        def process_redirect(self, exc):
            self.additional_headers = {"X-Token": "second"}
            return super().process_redirect(exc)

    class Connect(Tokens, reconnect if flavor == "sync" else connect):
        pass

    headers = {"X-Token": "first"}
    head = use(flavor, run, redirecting(telling), Connect, additional_headers=headers)
    assert "X-Token: second\r\n" in head and "first" not in head


def test_a_subclass_that_would_not_be_asked_is_refused():
    with pytest.raises(TypeError, match="handle_redirect.*override process_redirect"):

        class Redirects(connect):
            def handle_redirect(self, uri):
                pass

    with pytest.raises(TypeError, match="process_event"):

        class Events(ClientConnection):
            def process_event(self, event):
                pass


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("from playfield.websocket import serve", "import it from websockets"),
        ("from playfield.websocket.frames import Frame", "import it from websockets"),
        ("from playfield.websocket.asyncio.server import serve", "import it from websockets"),
        ("import playfield.websocket.legacy.client", "extra_headers are additional_headers"),
        ("from playfield.websocket import InvalidStatusCode", "catch InvalidStatus"),
        ("from playfield.websocket.headers import parse_upgrade", "connection.response"),
        ("import playfield.websocket as w; w.connect('ws://x', extra_headers={})", "additional_h"),
        ("import playfield.websocket as w; w.connect('ws://x', klass=object)", "create_connection"),
    ],
)
def test_what_is_not_there_says_what_to_use(statement, text):
    with pytest.raises((ImportError, TypeError), match=text):
        exec(statement, {})


def test_names_that_programs_use(run, server):
    with pytest.warns(DeprecationWarning, match="ClientConnection"):
        assert websockets.WebSocketClientProtocol is websockets.ClientConnection
    assert websockets.uri.parse_uri("wss://u:p@host/a?b").user_info == ("u", "p")
    url = server()

    async def main():
        async with websockets.connect(url, happy_eyeballs_delay=0.1) as connection:
            assert connection.protocol.state is websockets.protocol.State.OPEN
            assert [one.name for one in connection.protocol.extensions] == ["permessage-deflate"]
            assert connection.request.method == "GET"
            assert connection.request.serialize().startswith(b"GET / HTTP/1.1\r\nHost: ")
            assert connection.response.serialize().startswith(b"HTTP/1.1 101 ")
            with pytest.raises(AttributeError, match="recv, send"):
                connection.protocol.data_to_send()
        assert connection.protocol.state is State.CLOSED
        assert connection.protocol.close_code == 1000
        async with websockets.connect(url, family=socket.AF_INET) as connection:
            assert connection.remote_address[0] == "127.0.0.1"
        # Nothing listens there.
        with pytest.raises(OSError):
            await websockets.connect(url, family=socket.AF_INET6)

    run(main())


def test_names_that_blocking_programs_use(server):
    url = server()
    with connect_sync(url, legacy=True, family=socket.AF_INET) as connection:
        assert connection.protocol.subprotocol is None
        assert connection.socket.getpeername() == connection.remote_address
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        assert connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        with pytest.raises(AttributeError, match="recv\\(timeout="):
            connection.socket.settimeout(1)
        connection.send("still there")
        assert connection.recv() == "still there"
    for connection in connect_sync(url, legacy=False):
        assert isinstance(connection, ClientConnection)
        break
    connection.close()


REPLACED = """
import sys
import playfield.websocket.replace

import websockets
import websockets.exceptions
from websockets.asyncio.client import connect
from websockets.sync.client import ClientConnection, connect as connect_sync
from websockets.uri import parse_uri

assert connect.__module__ == "playfield.websocket._async" and websockets.connect is connect
with connect_sync(sys.argv[1]) as connection:
    assert isinstance(connection, ClientConnection)
    connection.send("hello")
    print(connection.recv())
    connection.close()
    try:
        connection.recv()
    except websockets.exceptions.ConnectionClosed as closed:
        print(closed.rcvd.code)
try:
    from websockets.asyncio.server import serve
    print("serves")
except ImportError:
    print("no server")
"""


@pytest.mark.parametrize("beside", ["alone", "installed"])
def test_libraries_that_import_websockets_can_use_this(server, beside):
    # Without its packages, this Python has no `websockets`.
    command = [sys.executable, *(["-S"] if beside == "alone" else []), "-c", REPLACED, server()]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "sdk" / "python")},
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    server_there = "serves" if beside == "installed" else "no server"
    assert done.stdout.split("\n") == ["hello", "1000", server_there, ""]



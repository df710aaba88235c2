"""Servers to connect to, each in its own thread, on loopback and a port of the system's."""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import threading

import pytest
import uvloop
from websockets.asyncio.server import serve


ROOT = pathlib.Path(__file__).parents[3]
#: Types that ``generate python`` writes for rooms of its tests.
GENERATED = ROOT / "crates" / "cli" / "src" / "codegen" / "tests" / "python"

#: The time in which an interrupted run ends, in seconds.
_ENDS_WITHIN = 25


def _interrupt(*_):
    """Ends the run, and tries again if it goes on: an exception that a finalizer or a callback of an
    extension meets is lost."""
    signal.setitimer(signal.ITIMER_REAL, _ENDS_WITHIN)
    raise KeyboardInterrupt


# Signals end a run with all that it has started, also in the background, where a shell has SIGINT
# ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in (signal.SIGTERM, signal.SIGALRM):
    signal.signal(_number, _interrupt)


def program(package, name):
    """The command of a program of the workspace: what ``make test`` has built, or else Cargo, which
    builds it with the features of its package alone."""
    if built := os.environ.get("TEST_BUILT"):
        return [os.path.join(built, name)]
    return ["cargo", "run", "--quiet", "--package", package, "--bin", name, "--"]


class OfJson:
    """The copy of a room whose events have these names, and whose payloads are JSON."""

    def __init__(self, *names):
        self.names = names

    def event_name(self, number):
        return self.names[number]

    def event(self, number, payload):
        return json.loads(payload)


@pytest.fixture(scope="session")
def example():
    """Starts an example as a node, once for each number: ``example("cards")`` is its address.
    ``example.stop("cards")`` ends it by a signal, and the next start is another process."""
    with contextlib.ExitStack() as stack:
        addresses, processes = {}, {}

        def stop(process):
            process.terminate()
            process.wait(20)
            process.stdout.close()

        def start(name, number=1):
            if (name, number) not in addresses:
                process = subprocess.Popen(
                    [*program("playfield-examples", name), "--listen=127.0.0.1:0"],
                    cwd=ROOT,
                    env={**os.environ, "FLEET_LISTEN": "127.0.0.1:0"},
                    stdout=subprocess.PIPE,
                    text=True,
                )
                stack.callback(stop, process)
                processes[name, number] = process
                line = process.stdout.readline()
                assert line.startswith("listening on "), line
                addresses[name, number] = line.split()[-1]
            return addresses[name, number]

        def stop_one(name, number=1, how=signal.SIGTERM):
            del addresses[name, number]
            processes.pop((name, number)).send_signal(how)

        start.stop = stop_one
        yield start


@pytest.fixture(scope="session")
def controls():
    """The URL of a scenario server."""
    process = subprocess.Popen(
        program("playfield-conformance", "scenario-server"),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    url = process.stdout.readline().strip()
    assert url.startswith("http://"), url
    yield url
    process.stdin.close()
    process.wait(20)
    process.stdout.close()


class Gate:
    """The way to a node, on a port of its own: ``address``. It can be cut, and lead elsewhere."""

    async def open(self, target):
        self.target, self.writers = target, set()
        self.server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.address = "127.0.0.1:%d" % self.server.sockets[0].getsockname()[1]
        return self

    def cut(self):
        """Ends all connections, and accepts no other until ``target`` is set again."""
        self.target = None
        for writer in self.writers:
            writer.transport.abort()

    async def _pass(self, reader, writer):
        if self.target is None:
            writer.transport.abort()
            return
        host, port = self.target.split(":")
        try:
            ahead, to = await asyncio.open_connection(host, int(port))
        except OSError:
            # The node has ended.
            writer.transport.abort()
            return
        self.writers |= {writer, to}
        await asyncio.gather(self._pump(reader, to), self._pump(ahead, writer))
        self.writers -= {writer, to}

    @staticmethod
    async def _pump(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def close(self):
        self.cut()
        self.server.close()
        await self.server.wait_closed()


@contextlib.asynccontextmanager
async def gate(target):
    """A :class:`Gate` to an address."""
    opened = await Gate().open(target)
    try:
        yield opened
    finally:
        await opened.close()


#: They are kept, so that no other gets the same ``id``.
_RUNS = []


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine on one event loop and on the other. Its ``id`` is another one in each test, for
    names of what the tests share a node for."""

    def run(coroutine):
        async def limited():
            return await asyncio.wait_for(coroutine, 30)

        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        loop = factory()
        task = loop.create_task(limited())
        try:
            return loop.run_until_complete(task)
        except (KeyboardInterrupt, SystemExit):
            # As `asyncio.run` does.
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
            raise
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    _RUNS.append(run)
    return run


class _Loop:
    """An event loop in a thread."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


async def _echo(connection):
    async for message in connection:
        await connection.send(message)


@pytest.fixture
def server():
    """Starts servers of the package `websockets`: ``server(handler, **options)`` is a URL. They
    echo by default."""
    with contextlib.ExitStack() as stack:

        def start(handler=_echo, **options):
            loop = _Loop()
            stack.callback(loop.stop)

            async def open_():
                return await serve(handler, "127.0.0.1", 0, close_timeout=1, **options)

            server = loop.call(open_())

            async def close():
                server.close(close_connections=True)
                await server.wait_closed()

            stack.callback(lambda: loop.call(close()))
            scheme = "wss" if options.get("ssl") else "ws"
            return f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}/"

        yield start


@pytest.fixture
def proxy():
    """Starts HTTP proxies, with TLS if there is a context: ``proxy(context)`` is a URL.

    A proxy reads and writes at the same time. One with two threads at an ``ssl.SSLSocket`` ended
    some connections early; an event loop does it in one thread.
    """
    with contextlib.ExitStack() as stack:

        def start(context=None):
            loop = _Loop()
            stack.callback(loop.stop)
            writers, ends = [], []

            async def connect(reader, writer):
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"CONNECT localhost:"), head
                port = int(head.split()[1].rpartition(b":")[2])
                ahead, to = await asyncio.open_connection("127.0.0.1", port)
                writers.extend([writer, to])
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
                passing = asyncio.gather(Gate._pump(reader, to), Gate._pump(ahead, writer))
                ends.append(passing)
                await passing

            async def open_():
                return await asyncio.start_server(connect, "127.0.0.1", 0, ssl=context)

            async def close():
                server.close()
                await server.wait_closed()
                for writer in writers:
                    writer.transport.abort()
                await asyncio.gather(*ends)
                for writer in writers:
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()

            server = loop.call(open_())
            stack.callback(lambda: loop.call(close()))
            scheme = "https" if context else "http"
            return f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}"

        yield start


@pytest.fixture
def socks_proxy():
    """Starts SOCKS5 proxies (RFC 1928), with a user and a password (RFC 1929) if they are given:
    ``socks_proxy(asked)`` is a URL. Where it was asked to connect to is added to ``asked``."""
    with contextlib.ExitStack() as stack:

        def start(asked, user=None):
            tasks, writers = [], []

            async def connect(reader, writer):
                tasks.append(asyncio.current_task())
                writers.append(writer)
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    await serve_one(reader, writer)
                writer.close()

            async def serve_one(reader, writer):
                methods = await reader.readexactly((await reader.readexactly(2))[1])
                method = 2 if user else 0
                if method not in methods:
                    writer.write(b"\x05\xff")
                    return
                writer.write(bytes([5, method]))
                if user:
                    given = []
                    await reader.readexactly(1)
                    for _ in range(2):
                        size = (await reader.readexactly(1))[0]
                        given.append((await reader.readexactly(size)).decode())
                    writer.write(b"\x01\x00" if tuple(given) == user else b"\x01\x01")
                kind = (await reader.readexactly(4))[3]
                if kind == 3:
                    host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
                else:
                    family, size = {1: (socket.AF_INET, 4), 4: (socket.AF_INET6, 16)}[kind]
                    host = socket.inet_ntop(family, await reader.readexactly(size))
                port = int.from_bytes(await reader.readexactly(2), "big")
                asked.append((host, port))
                try:
                    ahead, to = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    # The connection was refused.
                    writer.write(b"\x05\x05\x00\x01" + bytes(6))
                    return
                writers.append(to)
                writer.write(b"\x05\x00\x00\x01" + bytes(6))
                await asyncio.gather(Gate._pump(reader, to), Gate._pump(ahead, writer))

            async def open_():
                return await asyncio.start_server(connect, "127.0.0.1", 0)

            async def close():
                server.close()
                await server.wait_closed()
                for writer in writers:
                    writer.transport.abort()
                await asyncio.gather(*tasks, return_exceptions=True)
                for writer in writers:
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()

            loop = _Loop()
            stack.callback(loop.stop)
            server = loop.call(open_())
            stack.callback(lambda: loop.call(close()))
            return f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"

        yield start


@pytest.fixture
def aiohttp_server():
    """A URL of an echo server of the package `aiohttp`."""
    from aiohttp import WSMsgType, web

    async def echo(request):
        connection = web.WebSocketResponse()
        await connection.prepare(request)
        async for message in connection:
            if message.type is WSMsgType.TEXT:
                await connection.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await connection.send_bytes(message.data)
        return connection

    loop = _Loop()

    async def open_():
        app = web.Application()
        app.router.add_get("/", echo)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    runner = loop.call(open_())
    yield f"ws://127.0.0.1:{runner.addresses[0][1]}/"
    loop.call(runner.cleanup())
    loop.stop()


def read_head(sock):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte:
            break
        head += byte
    return head


def upgrade(sock, extra=b""):
    """The server's side of a handshake."""
    head = read_head(sock).decode()
    key = next(line[19:] for line in head.split("\r\n") if line.startswith("Sec-WebSocket-Key: "))
    digest = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
    sock.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + base64.b64encode(digest) + b"\r\n" + extra + b"\r\n"
    )
    return head


@pytest.fixture
def script():
    """Starts a server that runs a function with each accepted socket: ``script(function)`` is a
    URL. The socket is closed when the function returns."""
    with contextlib.ExitStack() as stack:

        def start(function):
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve_all():
                while True:
                    try:
                        sock, _ = listener.accept()
                    except OSError:
                        return
                    with sock, contextlib.suppress(OSError):
                        sock.settimeout(20)
                        function(sock)

            thread = threading.Thread(target=serve_all)
            thread.start()
            stack.callback(thread.join)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            return f"ws://127.0.0.1:{listener.getsockname()[1]}/"

        yield start


def read_all(sock):
    """All that comes until the client ends the stream."""
    parts = []
    while part := sock.recv(65536):
        parts.append(part)
    return b"".join(parts)

"""Servers to connect to, each in its own thread, on loopback and a port of the system's."""

import asyncio
import base64
import contextlib
import hashlib
import os
import pathlib
import socket
import subprocess
import threading

import pytest
import uvloop
from websockets.asyncio.server import serve


ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(scope="session")
def example():
    """Starts an example as a node, once: ``example("cards")`` is its address."""
    with contextlib.ExitStack() as stack:
        addresses = {}

        def stop(process):
            process.terminate()
            process.wait(20)
            process.stdout.close()

        def start(name):
            if name not in addresses:
                command = ["cargo", "run", "--quiet", "--package", "playfield-examples"]
                process = subprocess.Popen(
                    [*command, "--bin", name, "--", "--listen=127.0.0.1:0"],
                    cwd=ROOT,
                    env={**os.environ, "FLEET_LISTEN": "127.0.0.1:0"},
                    stdout=subprocess.PIPE,
                    text=True,
                )
                stack.callback(stop, process)
                line = process.stdout.readline()
                assert line.startswith("listening on "), line
                addresses[name] = line.split()[-1]
            return addresses[name]

        yield start


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a coroutine on one event loop and on the other."""

    def run(coroutine):
        async def limited():
            return await asyncio.wait_for(coroutine, 30)

        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        loop = factory()
        try:
            return loop.run_until_complete(limited())
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

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

"""Programs of `websocket-rs`, with its imports changed; where it is installed, with its own too."""

import array
import asyncio
import gc
import importlib.util
import os
import socket
import struct
import threading

import pytest

from conftest import read_all, upgrade

OURS = "playfield.websocket_rs"
PACKAGES = [OURS] + (["websocket_rs"] if importlib.util.find_spec("websocket_rs") else [])


@pytest.fixture(params=PACKAGES)
def package(request, server):
    """Imports a module by its name in `websocket_rs`.

    It ends before `server`, which waits for connections that only the collector closes.
    """

    def module(name=""):
        # Importing its package registers the modules of `websocket_rs`.
        importlib.import_module(request.param)
        return importlib.import_module(f"{request.param}.{name}" if name else request.param)

    module.ours = request.param == OURS
    # An object of `websocket_rs` must not end in another thread, where the collector may run.
    gc.disable()
    yield module
    gc.collect()
    gc.enable()


def test_the_modules_have_the_names(package):
    root = package()
    for name in ("connect", "WSMessage", "native_client", "sync", "async_client", "__version__"):
        assert hasattr(root, name)
    assert package("native_client").connect is root.connect
    assert package("native_client").WSMessage is root.WSMessage
    for name in ("NativeClient", "NativeClientBuffered"):
        assert isinstance(getattr(package("native_client"), name), type)
    for module in (package("sync.client"), package("async_client")):
        assert module.connect and isinstance(module.ClientConnection, type)
    assert package("sync").client is package("sync.client")


def test_the_same_modules_are_in_the_package_of_websockets():
    from playfield import websocket_rs
    from playfield.websocket import async_client, native_client

    assert native_client.connect is websocket_rs.connect and native_client.WSMessage is bytes
    assert async_client.connect is websocket_rs.async_client.connect


# sync.client


def test_blocking_programs(package, server):
    client = package("sync.client")
    url = server()
    with client.connect(url) as connection:
        connection.send("Hello")
        assert connection.recv() == "Hello"
        for data in (b"\0\1", bytearray(b"\2\3"), memoryview(b"\4"), array.array("B", b"\5")):
            connection.send(data)
            assert connection.recv() == bytes(data)
        assert connection.open is True and connection.closed is False
        assert connection.local_address[0] == connection.remote_address[0]
        connection.ping(b"ping")
        connection.pong(b"pong")
        for name in (connection.ping, connection.pong):
            with pytest.raises(ValueError, match="125 bytes"):
                name(b"x" * 126)
        connection.send("one")
        connection.send("two")
        for number, message in enumerate(connection):
            assert message == ("one", "two")[number]
            if number == 1:
                break
    assert connection.open is False and connection.closed is True
    for call in (lambda: connection.send("x"), connection.recv, lambda: connection.ping(b"x")):
        with pytest.raises(RuntimeError):
            call()


def test_a_blocking_connection_is_opened_by_its_with_block(package, server):
    client = package("sync.client")
    connection = client.ClientConnection(
        server(), connect_timeout=10.0, receive_timeout=10.0, tcp_nodelay=True
    )
    assert connection.closed and connection.local_address is None
    with pytest.raises(RuntimeError):
        connection.send("x")
    for _ in range(2):
        with connection as entered:
            assert entered is connection and connection.open
            address = connection.local_address
            with connection:
                assert connection.local_address == address
                connection.send("x")
                assert connection.recv() == "x"
    with client.connect(server(), 5.0, 2.0, 1.0, False) as connection:
        assert isinstance(connection, client.ClientConnection)


def test_blocking_timeouts_and_refusals(package, server, script):
    client = package("sync.client")
    with client.connect(server(), receive_timeout=0.05) as connection:
        with pytest.raises(TimeoutError):
            connection.recv()
        with pytest.raises(TimeoutError):
            next(connection)
    for url in (script(lambda sock: None), "ws://127.0.0.1:1", "http://localhost"):
        with pytest.raises(ConnectionError):
            client.connect(url)
    with pytest.raises(TypeError):
        client.connect("ws://127.0.0.1:1", headers=[("X", "y")])
    with client.connect(server(subprotocols=["chat"]), subprotocols=["chat"]) as connection:
        assert connection.subprotocol == "chat"


def test_a_blocking_program_hears_that_the_server_closes(package, server):
    async def bye(connection):
        await connection.send("bye")
        await connection.close(1001, "gone")

    client = package("sync.client")
    with client.connect(server(bye)) as connection:
        assert connection.recv() == "bye"
        with pytest.raises(RuntimeError, match="Connection closed"):
            connection.recv()
        assert (connection.close_code, connection.close_reason) == (1001, "gone")
    with client.connect(server(bye)) as connection:
        assert list(connection) == ["bye"]


# native_client


def test_programs_of_the_native_client(package, server):
    async def main(url):
        connect, kind = package().connect, package().WSMessage
        async with await connect(
            url,
            headers=[("X-Own", "1"), ("Host", "dropped")],
            subprotocols=["chat", "other"],
            connect_timeout=10.0,
            receive_timeout=10.0,
        ) as connection:
            assert connection.subprotocol == "chat"
            connection.send(b"hello")
            message = await connection.recv()
            assert isinstance(message, kind) and isinstance(message, (bytes, kind))
            assert len(message) == 5 and message == b"hello" and bytes(message) == b"hello"
            assert message[0] == 104 and message[1:3] == b"el" and hash(message) == hash(b"hello")
            assert memoryview(message)[:2] == b"he" and {b"hello": 1}[message] == 1
            assert struct.unpack_from("=H", message, 0) == struct.unpack("=H", b"he")
            # Text comes as bytes.
            connection.send("täxt")
            assert bytes(await connection.recv()).decode() == "täxt"
            connection.ping()
            connection.ping(b"keepalive")
            connection.ping(b"keepalive")
            connection.pong(b"alive")
            with pytest.raises(ValueError, match="125 bytes"):
                connection.ping(b"x" * 126)
            for number in range(3):
                connection.send(f"message {number}")
            got = []
            async for message in connection:
                got.append(bytes(message))
                if len(got) == 3:
                    break
            assert got == [b"message 0", b"message 1", b"message 2"]
            assert connection.is_open and not connection.closed
            assert connection.local_address[0] == connection.remote_address[0]
        assert not connection.is_open and connection.closed
        assert connection.local_address is None and connection.remote_address is None
        with pytest.raises(RuntimeError):
            connection.send(b"x")
        with pytest.raises(RuntimeError, match="[Cc]losed"):
            connection.pong(b"x")
        with pytest.raises(ConnectionError):
            await connection.recv()
        with pytest.raises(StopAsyncIteration):
            await connection.__anext__()

    asyncio.run(main(server(subprotocols=["chat"])))


def test_every_call_of_our_native_client_may_be_awaited(run, server):
    from playfield.websocket_rs import connect

    async def main(url):
        async with await connect(url) as connection:
            await connection.send("Hello")
            assert await connection.recv() == b"Hello"
            await connection.send("Hello")
            assert await connection.recv(decode=None) == "Hello"
            await connection.ping()
            await connection.pong(b"x")
            await connection.close()
            assert connection.close_code == 1000

    run(main(server()))


def test_the_native_client_closes_without_await(package, server):
    async def main(url):
        connection = await package().connect(url)
        assert connection.close() is None or package.ours
        assert not connection.is_open
        connection.close()

    ended = threading.Event()

    async def until_closed(connection):
        await connection.wait_closed()
        if connection.close_code in (1000, 1005):
            ended.set()

    asyncio.run(main(server(until_closed)))
    assert ended.wait(10)


def test_the_native_client_times_out(package, server):
    async def main(url):
        connection = await package().connect(url, receive_timeout=0.05)
        with pytest.raises(TimeoutError):
            await connection.recv()
        with pytest.raises(TimeoutError):
            await connection.__anext__()
        if package.ours:
            # A wait that has ended takes nothing.
            connection.send("x")
            assert await connection.recv() == b"x"
        connection.close()

    asyncio.run(main(server()))


def test_the_native_client_and_a_callback(package, server):
    async def main(url):
        got, done = [], asyncio.Event()

        def on_message(message):
            got.append(bytes(message))
            if len(got) == 2:
                done.set()

        connection = await package().connect(url, on_message=on_message)
        connection.send("text")
        connection.send(b"bytes")
        await asyncio.wait_for(done.wait(), 10)
        assert got == [b"text", b"bytes"]
        connection.close()

    asyncio.run(main(server()))


def test_the_native_client_compresses(package, server):
    async def main(url):
        connection = await package().connect(url, compression=True)
        for size in (10, 4096, 100_000):
            connection.send(b"A" * size)
            assert bytes(await connection.recv()) == b"A" * size
        connection.close()

    for options in ({}, {"compression": None}):
        asyncio.run(main(server(**options)))


@pytest.mark.parametrize(
    "frames, code",
    [
        (b"\x88\x05\x03\xe9bye", 1001),
        (b"\x80\x03bad", 1002),
        (b"\x02\x03one\x82\x03two", 1002),
    ],
)
def test_the_native_client_hears_that_the_connection_ends(package, script, frames, code):
    def serve(sock):
        upgrade(sock)
        sock.sendall(b"\x82\x05first" + frames)
        read_all(sock)

    async def main(url):
        connection = await package().connect(url)
        assert bytes(await connection.recv()) == b"first"
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(connection.recv(), 10)
        assert connection.close_code == code
        connection.close()

    asyncio.run(main(script(serve)))


def test_the_native_client_refuses(package, script):
    async def main():
        connect = package().connect
        with pytest.raises(ValueError):
            await connect("http://127.0.0.1:1")
        # Where the server ends the stream, the other waits until its timeout.
        for url in ["ws://127.0.0.1:1"] + [script(lambda sock: None)] * package.ours:
            with pytest.raises(ConnectionError):
                await connect(url)
        done = threading.Event()
        with pytest.raises(TimeoutError):
            await connect(script(lambda sock: done.wait(20)), connect_timeout=0.05)
        done.set()
        with pytest.raises(TypeError):
            await connect("ws://127.0.0.1:1", unknown=True)

    asyncio.run(main())


# async_client


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_programs_of_the_async_client(package, server):
    client = package("async_client")

    async def main(url):
        async with await client.connect(url, headers={"X-Own": "1"}, anything=1) as connection:
            await connection.send("Hello")
            assert await connection.recv() == "Hello"
            await connection.send(b"bytes")
            assert bytes(await connection.recv()) == b"bytes"
            assert connection.open is True and connection.closed is False
            assert connection.local_address[0] == connection.remote_address[0]
            await connection.ping(b"ping")
            await connection.ping(b"ping")
            await connection.pong(b"pong")
            await connection.send("one")
            await connection.send("two")
            got = []
            async for message in connection:
                got.append(message)
                if len(got) == 2:
                    break
            assert got == ["one", "two"]
        assert connection.closed
        with pytest.raises(RuntimeError):
            await connection.send("x")
        connection = client.ClientConnection(url, receive_timeout=0.05)
        with pytest.raises(RuntimeError):
            await connection.send("x")
        async with connection:
            with pytest.raises(TimeoutError):
                await connection.recv()

    asyncio.run(main(server()))


# The other modules take its arguments.


def test_the_modules_of_websockets_take_the_arguments(run, server):
    from playfield.websocket import connect
    from playfield.websocket.sync.client import ClientConnection
    from playfield.websocket.sync.client import connect as connect_sync

    options = dict(connect_timeout=10.0, receive_timeout=0.05, tcp_nodelay=True)
    url = server()
    for open_ in (ClientConnection, connect_sync):
        with open_(url, **options) as connection:
            assert isinstance(connection, ClientConnection) and connection.open
            with pytest.raises(TimeoutError):
                connection.recv()
            connection.send("x")
            assert connection.recv() == "x" and not connection.closed

    async def main():
        async with await connect(url, headers=[("X-Own", "1")], **options) as connection:
            with pytest.raises(TimeoutError, match="0.05 s"):
                await connection.recv()
            with pytest.raises(TimeoutError):
                async for _ in connection:
                    pass
            with pytest.raises(TimeoutError):
                async for _ in connection.recv_streaming():
                    pass
            await connection.send("x")
            assert await connection.recv() == "x" and connection.open

    run(main())


def test_small_messages_may_be_delayed(server):
    from playfield.websocket.sync import connect

    for nodelay in (True, False):
        with connect(server(), tcp_nodelay=nodelay) as connection:
            with socket.socket(fileno=os.dup(connection.fileno())) as same:
                option = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                assert bool(option) is nodelay

"""Many messages leave nothing behind. `make test-python-long` runs a million of each kind."""

import asyncio
import collections
import gc
import os
import pathlib
import subprocess
import sys
import tracemalloc

import pytest

from playfield.websocket import connect
from playfield.websocket import sync as blocking

#: How many messages each test sends and receives.
MESSAGES = int(os.environ.get("PLAYFIELD_LONG_MESSAGES", "5000"))

#: How many are on their way at a time.
WINDOW = 50

#: What the heap may keep in its free lists, in bytes.
RSS_GROWTH_MAX = 8 << 20

SERVER = """
import asyncio
from websockets.asyncio.server import serve

async def echo(connection):
    async for message in connection:
        if isinstance(message, bytes) and message[:1] == b"f":
            # In fragments.
            await connection.send([message[:3], message[3:]])
        else:
            await connection.send(message)

async def main():
    async with serve(echo, "127.0.0.1", 0, max_size=None, ping_interval=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def echo():
    """An echo server in its own process: what it keeps does not count."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield f"ws://127.0.0.1:{process.stdout.readline().strip()}/"
    finally:
        process.stdin.close()
        process.kill()
        process.wait(20)
        process.stdout.close()


def messages(count):
    """Texts and bytes of many sizes; some come back in fragments."""
    for number in range(count):
        size = (number * 7919) % (20_000 if number % 100 == 0 else 700)
        if number % 10 == 0:
            yield b"f" + bytes(size + 3)
        elif number % 2:
            yield b"b" * size
        else:
            yield "t" * size


def resident_bytes():
    status = pathlib.Path("/proc/self/statm")
    if not status.exists():
        pytest.skip("there is no /proc")
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Kept:
    """Checks what is kept over many messages, of which the first warm up."""

    def __init__(self, exchange):
        exchange(MESSAGES // 5)
        gc.collect()
        before = resident_bytes()
        exchange(MESSAGES)
        gc.collect()
        self.resident = resident_bytes() - before
        tracemalloc.start()
        try:
            exchange(WINDOW)
            gc.collect()
            before, _ = tracemalloc.get_traced_memory()
            exchange(MESSAGES // 5)
            gc.collect()
            self.traced = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

    def check(self):
        assert self.resident < RSS_GROWTH_MAX
        assert self.traced < 64 << 10


@pytest.mark.parametrize("compression", [None, "deflate"])
@pytest.mark.parametrize("way", ["recv", "streaming", "on_message"])
def test_asynchronous_messages_are_forgotten(run_long, echo, way, compression):
    async def open_(sent, room):
        def take(message):
            assert sent.popleft() == message
            room.release()

        taken = {"on_message": take} if way == "on_message" else {}
        return await connect(echo, compression=compression, ping_interval=None, **taken)

    async def exchange(connection, sent, room, count):
        async def receive():
            for _ in range(count):
                if way == "streaming":
                    parts = [part async for part in connection.recv_streaming()]
                    message = parts[0][:0].join(parts)
                else:
                    message = await connection.recv()
                assert sent.popleft() == message
                room.release()

        receiver = asyncio.ensure_future(receive()) if way != "on_message" else None
        for message in messages(count):
            await room.acquire()
            sent.append(message)
            await connection.send(message)
        for _ in range(WINDOW):
            await room.acquire()
        for _ in range(WINDOW):
            room.release()
        if receiver is not None:
            await receiver

    loop = run_long
    sent, room = collections.deque(), asyncio.Semaphore(WINDOW)
    connection = loop.run_until_complete(open_(sent, room))
    kept = Kept(lambda count: loop.run_until_complete(exchange(connection, sent, room, count)))
    loop.run_until_complete(connection.close())
    kept.check()


@pytest.fixture(params=["asyncio", "uvloop"])
def run_long(request):
    """An event loop."""
    import uvloop

    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
    loop = factory()
    try:
        yield loop
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_blocking_messages_are_forgotten(echo, compression):
    with blocking.connect(echo, compression=compression, ping_interval=None) as connection:

        def exchange(count):
            sent = collections.deque()
            for message in messages(count):
                sent.append(message)
                connection.send(message)
                if len(sent) == WINDOW:
                    assert connection.recv() == sent.popleft()
            while sent:
                assert connection.recv() == sent.popleft()

        kept = Kept(exchange)
    kept.check()


def test_connections_are_forgotten(run, echo):
    async def main():
        async def open_and_close(count):
            for number in range(count):
                async with connect(echo) as connection:
                    await connection.send("x")
                    if number % 2:
                        await connection.recv()

        await open_and_close(20)
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        await open_and_close(min(MESSAGES // 200, 5000))
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) == before

    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("there is no /proc")
    run(main())

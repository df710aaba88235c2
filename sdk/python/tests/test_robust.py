"""What programs do wrong, and what happens around a connection."""

import asyncio
import gc
import random
import ssl
import subprocess
import sys
import threading
import tracemalloc

import pytest
from conftest import read_head

from playfield.websocket import ConnectionClosed, Headers, connect
from playfield.websocket import sync as blocking


def test_canceling_any_wait_loses_no_message(run, server):
    """Seeded: each receive is canceled after a random number of turns, or not."""

    async def main(url):
        for seed in range(20):
            chance = random.Random(seed)
            async with connect(url) as connection:
                sent = [str(number) for number in range(60)]

                async def send():
                    for message in sent:
                        await connection.send(message)
                        for _ in range(chance.randrange(3)):
                            await asyncio.sleep(0)

                sender = asyncio.create_task(send())
                got = []

                async def receive():
                    got.append(await connection.recv())

                while len(got) < len(sent):
                    receiver = asyncio.create_task(receive())
                    for _ in range(chance.randrange(6)):
                        await asyncio.sleep(0)
                    if chance.random() < 0.5:
                        receiver.cancel()
                    await asyncio.gather(receiver, return_exceptions=True)
                assert got == sent, seed
                await sender

    run(main(server()))


def test_canceling_a_close_or_a_connect_leaves_nothing_behind(run, server):
    async def main(url):
        for turns in range(12):
            opening = asyncio.ensure_future(connect(url)._connect())
            for _ in range(turns):
                await asyncio.sleep(0.0002)
            opening.cancel()
            for result in await asyncio.gather(opening, return_exceptions=True):
                if not isinstance(result, BaseException):
                    await result.close()
            connection = await connect(url)
            closing = asyncio.ensure_future(connection.close())
            for _ in range(turns):
                await asyncio.sleep(0)
            closing.cancel()
            await asyncio.gather(closing, return_exceptions=True)
            await connection.close()
            with pytest.raises(ConnectionClosed):
                await connection.recv()
            with pytest.raises(ConnectionClosed):
                await connection.send("late")

    run(main(server()))


def test_messages_leave_no_memory_behind(run, server):
    async def main(url):
        async with connect(url) as connection:

            async def echo(messages):
                for number in range(messages):
                    await connection.send("x" * (number % 500))
                    await connection.recv()

            await echo(500)
            gc.collect()
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                await echo(3000)
                gc.collect()
                after, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            # Less than a tenth of a byte for each: the server is in this process, too.
            assert after - before < 64 << 10

    run(main(server()))


LEFT_OPEN = """
import asyncio, sys
import playfield.websocket, playfield.websocket.sync
kept = playfield.websocket.sync.connect(sys.argv[1])
kept.send("one")
kept.recv()

async def main():
    global other
    other = await playfield.websocket.connect(sys.argv[1])
    await other.send("two")

asyncio.run(main())
"""


def test_a_program_that_ends_with_open_connections_ends_well(server):
    done = subprocess.run(
        [sys.executable, "-c", LEFT_OPEN, server()], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_connection_of_a_loop_that_is_over(server):
    url = server()

    async def open_():
        return await connect(url)

    connection = asyncio.run(open_())

    async def use():
        with pytest.raises((ConnectionClosed, RuntimeError)):
            for _ in range(3):
                await connection.send("x")
                await asyncio.wait_for(connection.recv(), 1)

    try:
        asyncio.run(use())
    except (asyncio.TimeoutError, TimeoutError):
        pass
    del connection
    gc.collect()


def test_closing_in_one_thread_ends_the_wait_of_another(server):
    with blocking.connect(server(), close_timeout=1) as connection:
        ended = []

        def receive():
            try:
                connection.recv()
            except ConnectionClosed as error:
                ended.append(error)

        waiting = threading.Thread(target=receive)
        waiting.start()
        connection.close()
        waiting.join(20)
        assert not waiting.is_alive() and len(ended) == 1


def test_what_came_before_a_close_is_kept(server):
    async def greet(connection):
        await connection.send("welcome")
        await connection.wait_closed()

    connection = blocking.connect(server(greet))
    pong = connection.ping(ack_on_close=True)
    pong.wait(10)
    connection.close()
    assert connection.recv() == "welcome"
    with pytest.raises(ConnectionClosed):
        connection.recv()
    assert pong.wait(0)


def test_what_a_connection_tells_of_itself(run, server):
    async def main(url):
        async with connect(url, additional_headers={"X-One": "1"}) as connection:
            assert connection.request.path == "/" and connection.request.headers["x-one"] == "1"
            assert connection.response.headers["upgrade"] == "websocket"
            with pytest.raises(KeyError):
                connection.response.headers["X-None"]
            assert isinstance(connection.response.headers, Headers)
            assert connection.id == connection.id and connection.logger
            peer = connection.transport.get_extra_info("peername")
            assert peer == connection.remote_address
            assert connection.transport.get_extra_info("ssl_object", 1) == 1
            with pytest.raises(TypeError):
                await connection.ping([1])
        for wrong in [{"subprotocols": "chat"}, {"compression": "zip"}]:
            with pytest.raises((TypeError, ValueError)):
                await connect(url, **wrong)
        with pytest.raises(ValueError):
            await connect(url, proxy="http://127.0.0.1:9", proxy_ssl=ssl.create_default_context())

    run(main(server()))


@pytest.mark.parametrize("flavor", ["async", "sync"])
def test_a_redirect_that_the_program_can_not_mean(script, run, flavor):
    def redirect(sock):
        read_head(sock)
        sock.sendall(
            b"HTTP/1.1 302 Found\r\nLocation: ws://elsewhere.test/\r\nContent-Length: 0\r\n\r\n"
        )

    url = script(redirect)
    host, _, port = url.removeprefix("ws://").rstrip("/").partition(":")
    where = {"host": host, "port": int(port)}

    async def main():
        with pytest.raises(ValueError, match="explicit host or port"):
            if flavor == "async":
                await connect("ws://here.test/", **where)
            else:
                blocking.connect("ws://here.test/", **where)

    run(main())

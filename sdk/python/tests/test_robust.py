"""What programs do wrong, and what happens around a connection."""

import asyncio
import gc
import os
import random
import ssl
import subprocess
import sys
import threading
import tracemalloc
import weakref

import pytest
from conftest import read_head

from playfield.websocket import ConnectionClosed, Headers, InvalidURI, connect
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

    connections = [asyncio.run(open_())]

    async def use():
        with pytest.raises((ConnectionClosed, RuntimeError)):
            for _ in range(3):
                await connections[0].send("x")
                await asyncio.wait_for(connections[0].recv(), 1)

    try:
        asyncio.run(use())
    except (asyncio.TimeoutError, TimeoutError):
        pass
    with pytest.warns(ResourceWarning, match="unclosed connection"):
        connections.clear()
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


@pytest.mark.parametrize("flavor", ["async", "sync"])
@pytest.mark.parametrize("uri", ["ws://[::1", "//[::1", "ws://here.test:x/"])
def test_a_redirect_to_what_is_no_uri(script, run, flavor, uri):
    def redirect(sock):
        read_head(sock)
        head = f"HTTP/1.1 302 Found\r\nLocation: {uri}\r\nContent-Length: 0\r\n\r\n"
        sock.sendall(head.encode())

    url = script(redirect)

    async def main():
        with pytest.raises(InvalidURI):
            if flavor == "async":
                await connect(url)
            else:
                blocking.connect(url)

    run(main())


def test_a_connection_and_its_callback_are_collected(run, server):
    class Bot:
        async def start(self, url):
            self.connection = await connect(url, on_message=self.take)

        def take(self, message):
            pass

    async def main(url):
        async def bot():
            one = Bot()
            await one.start(url)
            one.connection.abort()
            return weakref.ref(one)

        async def receiver():
            connection = await connect(url)
            receiving = asyncio.create_task(connection.recv())
            await asyncio.sleep(0)
            connection.abort()
            await asyncio.gather(receiving, return_exceptions=True)
            return weakref.ref(connection)

        return [await bot() for _ in range(5)] + [await receiver() for _ in range(5)]

    left = run(main(server()))
    gc.collect()
    assert [one() for one in left] == [None] * 10


def test_a_loop_that_is_over_keeps_no_connection(server):
    url = server()

    async def leave(receives):
        connection = await connect(url)
        if receives:
            receiving = connection.recv().__await__()
            next(receiving)
            connection.kept = receiving
        return weakref.ref(connection)

    for receives in [False, True]:
        with pytest.warns(ResourceWarning, match="unclosed connection"):
            left = [asyncio.run(leave(receives)) for _ in range(5)]
            if receives:
                gc.collect()
        # Without a cycle, it ends with the loop.
        assert [one() for one in left] == [None] * 5


def test_each_call_raises_an_exception_of_its_own(run, server):
    async def main(url):
        connection = await connect(url)
        await connection.close()
        errors = []
        for _ in range(3):
            with pytest.raises(ConnectionClosed) as raised:
                await connection.recv()
            errors.append(raised.value)
        assert len({id(error) for error in errors}) == 3

    run(main(server()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("how", ["abort", "collect", "exit", "send", "close", "leave"])
def test_what_a_forked_child_does_leaves_the_parent_alone(run, server, how):
    async def main(url):
        async with connect(url) as connection:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    if how == "abort":
                        connection.abort()
                    elif how == "collect":
                        del connection
                        gc.collect()
                    elif how == "send":
                        with pytest.raises(ConnectionClosed):
                            connection.send("child")
                    elif how == "close":
                        with pytest.raises(StopIteration):
                            connection.close().send(None)
                    elif how == "leave":
                        with pytest.raises(StopIteration):
                            connection.__aexit__(None, None, None).send(None)
                    code = 0
                finally:
                    os._exit(code)
            _, status = os.waitpid(child, 0)
            assert status == 0
            await connection.send("x")
            assert await connection.recv() == "x"

    run(main(server()))


async def _step(awaiting, turns):
    """Starts to await something, and cancels it after some turns of the loop. Returns the task."""
    task = asyncio.ensure_future(awaiting)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=20)
    assert task.done()
    return task


def test_canceling_any_await_leaves_a_connection_that_works(run, server):
    """Each operation is canceled after each number of turns, or ends before."""

    async def main(url):
        for turns in range(5):
            async with connect(url, max_size=None) as connection:

                async def receive():
                    got.append(await connection.recv())

                async def iterate():
                    async for message in connection:
                        got.append(message)
                        return

                async def ping():
                    await (await connection.ping())

                sent, got = [], []
                for number in range(8):
                    # Larger than what the kernel takes: the wait for the rest is canceled.
                    message = f"{turns} {number} " + "x" * (3_000_000 if number == 5 else 10)
                    sent.append(message)
                    await _step(connection.send(message), turns)
                    await _step(ping(), turns)
                    await _step(connection.pong(), turns)
                    await _step(connection.wait_closed(), turns)
                    await _step(receive(), turns)
                    await _step(iterate(), turns)
                while len(got) < len(sent):
                    await receive()
                assert got == sent

    run(main(server(max_size=None)))


def test_canceling_the_first_fragment_loses_nothing(run, server):
    async def main(url):
        async with connect(url) as connection:
            for turns in range(4):

                async def stream():
                    return [part async for part in connection.recv_streaming()]

                # Nothing was received: another one may.
                await _step(stream(), turns)
                await connection.send(f"a{turns}")
                assert await stream() == [f"a{turns}"]

    run(main(server()))


LOOP_EXIT = """
import asyncio, sys, threading, time
from playfield.websocket import connect

url, mode = sys.argv[1:]
begun = threading.Event()

def take(message):
    begun.set()
    time.sleep(0.001)

async def main():
    on_message = take if mode == "callback" else None
    async with connect(url, proxy=None, on_message=on_message) as connection:
        if on_message is not None:
            await asyncio.sleep(3600)
        async for message in connection:
            begun.set()
            if mode == "slow":
                time.sleep(0.001)
            else:
                sum(range(2000))

threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
begun.wait()
threading.Event().wait(0.05)
"""


def test_the_interpreter_ends_well_while_a_loop_in_a_daemon_thread_is_busy(server):
    async def pour(connection):
        while True:
            await connection.send("x" * 100)

    url = server(pour)
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", LOOP_EXIT, url, mode], stderr=subprocess.PIPE, text=True
        )
        for mode in ("busy", "busy", "slow", "slow", "callback")
    ]
    for program in programs:
        _, errors = program.communicate(timeout=60)
        assert program.returncode == 0, errors
        assert "panicked" not in errors


def test_messages_held_back_by_fragments_keep_their_order(run, server):
    got = []

    async def take(connection):
        async for message in connection:
            got.append(message)

    async def main(url):
        async with connect(url) as connection:

            async def parts():
                for _ in range(5):
                    yield "part"
                    await asyncio.sleep(0)

            fragments = asyncio.create_task(connection.send(parts()))
            sendings = []
            for number in range(30):
                sendings.append(connection.send(str(number)))
                await asyncio.sleep(0)
            await fragments
            for sending in sendings:
                await sending
            await (await connection.ping())

    run(main(server(take)))
    assert [message for message in got if message != "part" * 5] == [str(n) for n in range(30)]


def test_messages_held_back_by_fragments_fail_when_the_connection_is_lost(run, server):
    async def main(url):
        connection = await connect(url)

        async def parts():
            yield "part"
            await asyncio.sleep(3600)

        fragments = asyncio.create_task(connection.send(parts()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        sending = connection.send("later")
        connection.abort()
        with pytest.raises(ConnectionClosed):
            await sending
        fragments.cancel()
        await asyncio.gather(fragments, return_exceptions=True)

    run(main(server()))

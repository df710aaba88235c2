"""Asynchronous connections: fragments for a slow or a canceled reader, keepalive, timeouts."""

import asyncio
import threading

import pytest
from websockets.asyncio import server as peer
from websockets.frames import Frame, Opcode

from conftest import read_all, upgrade
from playfield.websocket import ConcurrencyError, ConnectionClosedError, State, connect
from playfield.websocket._async import ClientConnection


def in_steps(*frames):
    """A server that sends each frame once it may, and the semaphore that lets it."""
    may = threading.Semaphore(0)

    def serve(sock):
        upgrade(sock)
        for part in frames:
            assert may.acquire(timeout=20)
            sock.sendall(part)
        read_all(sock)

    return serve, may


async def until_waiting(task):
    for _ in range(10):
        await asyncio.sleep(0)
    assert not task.done()


def test_a_stream_that_is_canceled_before_its_start_takes_nothing(run, script):
    serve, may = in_steps(b"\x02\x01a\x80\x01b")

    async def main(url):
        connection = await connect(url, close_timeout=0.2)
        for _ in range(3):
            task = asyncio.ensure_future(connection.recv_streaming().__anext__())
            await until_waiting(task)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        may.release()
        assert [part async for part in connection.recv_streaming()] == [b"a", b"b"]
        await connection.close()

    run(main(script(serve)))


def test_a_stream_that_is_canceled_inside_a_message_gives_no_other(run, script):
    serve, may = in_steps(b"\x02\x01a", b"\x80\x01b\x82\x01c")

    async def main(url):
        connection = await connect(url, close_timeout=0.2)
        fragments = connection.recv_streaming()
        may.release()
        assert await fragments.__anext__() == b"a"
        task = asyncio.ensure_future(fragments.__anext__())
        await until_waiting(task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may.release()
        # The rest of the message would be taken for a whole one.
        with pytest.raises(ConcurrencyError):
            await connection.recv()
        await connection.close()
        assert connection.state is State.CLOSED

    run(main(script(serve)))


def test_a_receive_that_times_out_takes_nothing(run, script):
    serve, may = in_steps(b"\x81\x01a", b"\x01\x01b", b"\x80\x01c")

    async def main(url):
        connection = await connect(url, receive_timeout=0.02, close_timeout=0.2)
        for _ in range(3):
            with pytest.raises(TimeoutError, match="0.02 s"):
                await connection.recv()
        may.release()
        while (message := connection._take()) is None:
            await asyncio.sleep(0.001)
        assert message == "a"
        may.release()
        fragments = connection.recv_streaming()
        assert await fragments.__anext__() == "b"
        with pytest.raises(TimeoutError):
            await fragments.__anext__()
        may.release()
        await connection.close()

    run(main(script(serve)))


def test_keepalive_goes_on_for_as_long_as_pings_are_answered(run):
    async def main():
        pings, enough = 0, asyncio.Event()

        class Counting(peer.ServerConnection):
            def process_event(self, event):
                nonlocal pings
                if isinstance(event, Frame) and event.opcode is Opcode.PING:
                    pings += 1
                    if pings == 5:
                        enough.set()
                super().process_event(event)

        async def echo(connection):
            async for message in connection:
                await connection.send(message)

        async with peer.serve(echo, "127.0.0.1", 0, create_connection=Counting) as server:
            port = server.sockets[0].getsockname()[1]
            async with connect(f"ws://127.0.0.1:{port}", ping_interval=0.01) as connection:
                await asyncio.wait_for(enough.wait(), 20)
                await connection.send("still here")
                assert await connection.recv() == "still here"

    run(main())


def test_a_keepalive_that_can_not_be_sent_gives_the_connection_up(run, script):
    class Broken(ClientConnection):
        def _send_control(self, *_):
            raise self._closed_error()

    def hold(sock):
        upgrade(sock)
        read_all(sock)

    async def main(url):
        reported = []
        handle = lambda loop, context: reported.append(context)  # noqa: E731
        asyncio.get_running_loop().set_exception_handler(handle)
        for timeout in (0.01, None):
            connection = await connect(
                url, ping_interval=0.01, ping_timeout=timeout, create_connection=Broken
            )
            with pytest.raises(ConnectionClosedError, match="keepalive ping timeout"):
                await connection.recv()
        assert not reported

    run(main(script(hold)))


def test_a_flood_waits_while_a_program_waits_for_the_close(run, script):
    taken, stopped = [], threading.Event()

    def flood(sock):
        upgrade(sock)
        sock.settimeout(0.3)
        try:
            while len(taken) < 20_000:
                sock.sendall(b"\x82\x7e\x40\x00" + b"x" * 0x4000)
                taken.append(None)
        except TimeoutError:
            stopped.set()
        sock.settimeout(20)
        read_all(sock)

    async def main(url):
        connection = await connect(url, max_queue=4, ping_interval=None, close_timeout=0.2)
        pong = await connection.ping()
        closed = asyncio.ensure_future(connection.wait_closed())
        assert await asyncio.to_thread(stopped.wait, 20)
        assert len(taken) < 20_000 and not closed.done() and not pong.done()
        connection.abort()
        await closed

    run(main(script(flood)))

"""Blocking connections: messages fragment by fragment, and waits beside a server that floods."""

import threading

import pytest

from conftest import read_all, upgrade
from playfield.websocket import ConcurrencyError, ConnectionClosedError, State
from playfield.websocket.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from playfield.websocket.sync import connect


def frame(first, payload):
    assert len(payload) < 126
    return bytes([first, len(payload)]) + payload


def in_steps(frames):
    """A server that sends each frame once it may, and the semaphore that lets it."""
    may = threading.Semaphore(0)

    def serve(sock):
        upgrade(sock)
        for part in frames:
            assert may.acquire(timeout=20)
            sock.sendall(part)
        read_all(sock)

    return serve, may


def test_fragments_are_received_as_they_arrive(script):
    serve, may = in_steps([b"\x02\x01a", b"\x89\x00\x00\x02bc", b"\x00\x00", b"\x80\x01d"])
    with connect(script(serve), close_timeout=0.2) as connection:
        got = []
        may.release()
        for part in connection.recv_streaming():
            got.append(part)
            may.release()
        assert got == [b"a", b"bc", b"", b"d"]


@pytest.mark.parametrize("decode", [None, True, False])
def test_text_in_fragments_may_split_a_character(script, decode):
    serve, may = in_steps([b"\x01\x02x\xc3\x80\x02\xa4y"])
    may.release()
    with connect(script(serve), close_timeout=0.2) as connection:
        parts = list(connection.recv_streaming(decode))
    whole = "xäy".encode() if decode is False else "xäy"
    assert len(parts) == 2 and whole[:0].join(parts) == whole


def test_binary_in_fragments_may_be_decoded(script):
    serve, may = in_steps([b"\x02\x02x\xc3\x80\x02\xa4y", b"\x82\x01z"])
    may.release(2)
    with connect(script(serve), close_timeout=0.2) as connection:
        assert list(connection.recv_streaming(decode=True)) == ["x", "äy"]
        assert list(connection.recv_streaming(decode=True)) == ["z"]


def test_a_whole_message_joins_its_fragments(script):
    serve, may = in_steps([b"\x02\x01a\x00\x01b\x80\x01c", b"\x81\x01d", b"\x01\x01e\x80\x01f"])
    may.release(3)
    with connect(script(serve), close_timeout=0.2) as connection:
        assert [connection.recv(5), connection.recv(5)] == [b"abc", "d"]
        assert connection.recv_many(timeout=5) == ["ef"]


def test_compressed_messages_arrive_in_fragments(server):
    async def send(connection):
        await connection.send(["a" * 5000, "b" * 5000, "c"])
        await connection.send("d" * 5000)

    for factory in [None, ClientPerMessageDeflateFactory(True, True)]:
        with connect(server(send), extensions=factory and [factory]) as connection:
            parts = list(connection.recv_streaming())
            assert "".join(parts) == "a" * 5000 + "b" * 5000 + "c" and len(parts) > 1
            assert list(connection.recv_streaming()) == ["d" * 5000]


def test_the_rest_of_a_message_is_for_who_has_its_start(script):
    serve, may = in_steps([b"\x02\x01a", b"\x80\x01b\x82\x01c"])
    with connect(script(serve), close_timeout=0.2) as connection:
        fragments = connection.recv_streaming()
        may.release()
        assert next(fragments) == b"a"
        for receive in (connection.recv, connection.recv_many, connection.__next__):
            with pytest.raises(ConcurrencyError, match="recv"):
                receive()
        with pytest.raises(ConcurrencyError, match="recv_streaming"):
            next(connection.recv_streaming())
        may.release()
        assert list(fragments) == [b"b"] and connection.recv(5) == b"c"


def test_a_stream_that_is_given_up_is_closed_with_the_connection(script):
    serve, may = in_steps([b"\x02\x01a"])
    may.release()
    connection = connect(script(serve), close_timeout=0.2)
    assert next(connection.recv_streaming()) == b"a"
    connection.close()
    assert connection.state is State.CLOSED
    with pytest.raises(ConnectionClosedError):
        connection.recv()


def test_a_message_that_ends_early_is_not_received(script):
    def cut(sock):
        upgrade(sock)
        sock.sendall(b"\x02\x01a\x00\x01b")

    url = script(cut)
    with connect(url) as connection:
        got = []
        with pytest.raises(ConnectionClosedError):
            for part in connection.recv_streaming():
                got.append(part)
        assert got == [b"a", b"b"]
    with connect(url) as connection, pytest.raises(ConnectionClosedError):
        connection.recv()


def test_a_receive_timeout_ends_the_wait_for_a_fragment(script):
    serve, may = in_steps([b"\x02\x01a", b"\x80\x01b"])
    may.release()
    with connect(script(serve), receive_timeout=0.05, close_timeout=0.2) as connection:
        fragments = connection.recv_streaming()
        assert next(fragments) == b"a"
        with pytest.raises(TimeoutError):
            next(fragments)
        may.release()


class Flood:
    """A server that sends as long as the client reads, and counts the frames that were taken."""

    def __init__(self, first, following, count=20_000):
        self.first, self.following, self.count = first, following, count
        self.taken = 0
        self.stopped = threading.Event()

    def __call__(self, sock):
        upgrade(sock)
        sock.sendall(self.first)
        sock.settimeout(0.3)
        try:
            while self.taken < self.count:
                sock.sendall(self.following)
                self.taken += 1
        except TimeoutError:
            self.stopped.set()
        sock.settimeout(20)
        read_all(sock)


def test_a_slow_reader_of_fragments_stops_the_server(script):
    flood = Flood(b"\x02\x00", b"\x00\x7e\x40\x00" + b"x" * 0x4000)
    connection = connect(script(flood), max_queue=4, max_size=None, close_timeout=0.2)
    fragments = connection.recv_streaming()
    assert next(fragments) == b""
    assert flood.stopped.wait(20) and flood.taken < flood.count
    # What came is there, and reading on takes more.
    for _ in range(flood.taken):
        assert len(next(fragments)) == 0x4000
    connection.abort()


@pytest.mark.parametrize("wait", ["ping", "wait_closed"])
def test_waits_read_no_more_messages_than_the_queue_takes(script, wait):
    flood = Flood(b"", b"\x82\x7e\x40\x00" + b"x" * 0x4000)
    connection = connect(script(flood), max_queue=4, close_timeout=0.2, ping_interval=None)
    ended = []

    def until_stopped():
        while not flood.stopped.is_set():
            waited = (
                connection.ping().wait(0.05) if wait == "ping" else connection.wait_closed(0.05)
            )
            ended.append(waited)

    waiting = threading.Thread(target=until_stopped)
    waiting.start()
    waiting.join(20)
    assert not waiting.is_alive() and flood.taken < flood.count and not any(ended)
    # One read brings at most 256 KiB beyond the queue.
    assert connection._waiting <= 4 + (256 << 10) // 0x4000
    connection.abort()


def test_a_wait_goes_on_once_messages_are_taken(server):
    async def send(connection):
        for number in range(8):
            await connection.send(str(number))
        async for message in connection:
            await connection.send(message)

    with connect(server(send), max_queue=8, compression=None) as connection:
        while connection._waiting < 8:
            connection._pump(0.05)
        pong = connection.ping()
        assert not pong.wait(0.1)
        waiting = threading.Thread(target=pong.wait)
        waiting.start()
        assert connection.recv() == "0"
        waiting.join(10)
        assert pong.is_set()
        assert [connection.recv() for _ in range(7)] == [str(number) for number in range(1, 8)]

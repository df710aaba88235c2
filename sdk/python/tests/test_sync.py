"""The synchronous client."""

import os
import signal
import threading

import pytest
from conftest import read_all, upgrade
from test_async import BAD_FRAMES

from playfield.websocket import (
    ConcurrencyError,
    ConnectionClosedError,
    ConnectionClosedOK,
    InvalidStatus,
    PayloadTooBig,
    ProtocolError,
    State,
)
from playfield.websocket.sync import connect


@pytest.mark.parametrize("spin_us", [0, 200])
def test_text_stays_text_and_bytes_stay_bytes(server, aiohttp_server, spin_us):
    for url in (server(), aiohttp_server):
        with connect(url, spin_us=spin_us) as connection:
            for message in ["text", "", "ünï", b"bytes", b"", b"\xff\xfe", "x" * 70_000]:
                connection.send(message)
                answer = connection.recv(timeout=10)
                assert (type(answer), answer) == (type(message), message)
            connection.send(bytearray(b"ab"))
            connection.send(memoryview(b"ab"))
            connection.send(b"ab", text=True)
            connection.send("ab", text=False)
            connection.send(["a", "b"])
            got = [connection.recv() for _ in range(5)]
            assert got == [b"ab", b"ab", "ab", b"ab", "ab"]
            for wrong in (5, {}):
                with pytest.raises(TypeError):
                    connection.send(wrong)


def test_many_at_once(server):
    with connect(server()) as connection:
        sent = [str(number) for number in range(1000)]
        connection.send_many(sent)
        got = []
        while len(got) < len(sent):
            some = connection.recv_many(max=100, timeout=10)
            assert 1 <= len(some) <= 100
            got += some
        assert got == sent
        with connection.cork():
            for message in sent[:10]:
                connection.send(message)
        assert [connection.recv() for _ in range(10)] == sent[:10]
        with connection.cork():
            connection.send("x")
            assert connection.recv(timeout=10) == "x"
        with pytest.raises(TypeError):
            connection.send_many(["a", 5])
        with pytest.raises(TimeoutError):
            connection.recv(timeout=0)


def test_iteration_ends_with_the_connection(server):
    async def count(connection):
        for number in range(3):
            await connection.send(str(number))

    async def fail(connection):
        await connection.close(1011, "why")

    with connect(server(count)) as connection:
        assert list(connection) == ["0", "1", "2"]
    with connect(server(fail)) as connection:
        with pytest.raises(ConnectionClosedError) as error:
            list(connection)
    assert error.value.rcvd.reason == "why"


def test_closing(server, script):
    connection = connect(server())
    connection.close(4000, "bye")
    connection.close()
    assert connection.state is State.CLOSED and connection.close_code == 4000
    assert connection.wait_closed()
    for attempt in (connection.recv, lambda: connection.send("x"), connection.ping):
        with pytest.raises(ConnectionClosedError):
            attempt()

    def deaf(sock):
        upgrade(sock)
        read_all(sock)

    connection = connect(script(deaf), close_timeout=0.05)
    connection.close()
    assert connection.close_code == 1006


@pytest.mark.parametrize("name", BAD_FRAMES)
def test_a_server_that_breaks_the_protocol(script, name):
    frame, code = BAD_FRAMES[name]

    def broken(sock):
        upgrade(sock)
        sock.sendall(b"\x81\x02ok" + frame)
        read_all(sock)

    connection = connect(script(broken), max_size=1024, close_timeout=0.05)
    assert connection.recv() == "ok"
    with pytest.raises(ConnectionClosedError) as error:
        connection.recv()
    assert error.value.sent.code == code
    assert isinstance(error.value.__cause__, PayloadTooBig if code == 1009 else ProtocolError)
    connection.close()


def test_pings(server):
    with connect(server()) as connection:
        pong = connection.ping()
        assert pong.wait(10) and pong.latency >= 0
        connection.send("x")
        assert connection.ping().wait(10)
        assert connection.recv() == "x"


def test_other_threads(server):
    with connect(server()) as connection:
        got = []
        receiver = threading.Thread(target=lambda: got.extend(connection.recv() for _ in range(400)))
        receiver.start()
        while connection._waiting is not None:
            pass
        with pytest.raises(ConcurrencyError):
            connection.recv()
        senders = [
            threading.Thread(target=lambda: [connection.send("x" * n) for n in range(100)])
            for _ in range(4)
        ]
        for sender in senders:
            sender.start()
        for thread in [*senders, receiver]:
            thread.join()
        assert sorted(got) == sorted(4 * ["x" * n for n in range(100)])


def test_close_wakes_a_thread_that_receives(server):
    connection = connect(server())
    errors = []

    def receive():
        try:
            connection.recv()
        except ConnectionClosedOK as error:
            errors.append(error)

    receiver = threading.Thread(target=receive)
    receiver.start()
    while connection._waiting is not None:
        pass
    connection.close()
    receiver.join()
    assert len(errors) == 1


def test_a_signal_interrupts_a_receive(server):
    class Interrupted(Exception):
        pass

    def interrupt(*_):
        raise Interrupted

    with connect(server()) as connection:
        before = signal.signal(signal.SIGUSR1, interrupt)
        try:
            main = threading.main_thread().ident

            def kill():
                while connection._waiting is not None:
                    pass
                signal.pthread_kill(main, signal.SIGUSR1)

            killer = threading.Thread(target=kill)
            killer.start()
            with pytest.raises(Interrupted):
                while True:
                    # Should the signal come before the wait, the timeout finds it.
                    try:
                        connection.recv(timeout=0.05)
                    except TimeoutError:
                        pass
            killer.join()
        finally:
            signal.signal(signal.SIGUSR1, before)
        connection.send("after")
        assert connection.recv() == "after"


def test_pings_are_answered_while_nobody_receives(script):
    answers = []

    def ask(sock):
        upgrade(sock)
        sock.sendall(b"\x89\x02hi")
        answers.append(sock.recv(65536))
        read_all(sock)

    connection = connect(script(ask), close_timeout=0.05)
    while not answers:
        threading.Event().wait(0.01)
    assert answers[0][0] == 0x8A
    connection.close()


def test_refusals(script):
    from conftest import read_head

    def refuse(sock):
        read_head(sock)
        sock.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

    url = script(refuse)
    with pytest.raises(InvalidStatus):
        connect(url)
    with pytest.raises(ValueError):
        connect(url, additional_headers={"X": "a\r\nEvil: 1"})
    with pytest.raises(TimeoutError):
        connect(script(read_all), open_timeout=0.05)


def test_a_lost_connection(script):
    def cut(sock):
        upgrade(sock)
        sock.sendall(b"\x81\x01a\x81")

    connection = connect(script(cut))
    assert connection.recv() == "a"
    with pytest.raises(ConnectionClosedError):
        connection.recv()
    assert connection.close_code == 1006


def test_descriptors_are_closed(server):
    url = server()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    for _ in range(20):
        with connect(url) as connection:
            connection.send("x")
        connect(url).abort()
    del connection
    if before is not None:
        while len(os.listdir("/proc/self/fd")) > before + 20:
            threading.Event().wait(0.01)


def test_the_close_is_known_in_except(server):
    def close(connection):
        return connection.close(4001, "why")

    with connect(server(close)) as connection:
        with pytest.raises(ConnectionClosedError):
            connection.recv(timeout=10)
        assert connection.state is State.CLOSED
        assert (connection.close_code, connection.close_reason) == (4001, "why")

"""A blocking connection among signals, threads, forks and servers that do not behave."""

import contextlib
import os
import subprocess
import sys
import threading

import pytest
from conftest import read_all, upgrade

from playfield.websocket import (
    ConcurrencyError,
    ConnectionClosed,
    ConnectionClosedError,
    PayloadTooBig,
    State,
    _sync,
)
from playfield.websocket.sync import connect


def run_program(code, *arguments):
    """What a program prints, and all of that goes wrong in it."""
    command = [sys.executable, "-X", "faulthandler", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()


def in_thread(function):
    """What a function returns or raises, carried out in a thread so that it may hang alone."""
    results = []

    def run():
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(20)
    assert results, "it hangs"
    return results[0]


def until(condition):
    while not condition():
        threading.Event().wait(0.001)


def frame(opcode, payload=b"", fin=True, rsv=0):
    assert len(payload) < 126
    return bytes([(0x80 if fin else 0) | rsv | opcode, len(payload)]) + payload


def read_frame(sock):
    """The opcode with its flags, and the payload."""

    def exactly(count):
        parts = bytearray()
        while len(parts) < count:
            part = sock.recv(count - len(parts))
            if not part:
                raise ConnectionResetError
            parts += part
        return parts

    first, second = exactly(2)
    length = second & 127
    if length >= 126:
        length = int.from_bytes(exactly(2 if length == 126 else 8), "big")
    mask = exactly(4)
    payload = exactly(length)
    return first, bytes(byte ^ mask[place % 4] for place, byte in enumerate(payload[:200]))


def flood(sock):
    """A server that pings all the time and reads nothing."""
    upgrade(sock)
    pings = frame(9, b"p" * 125) * 512
    while True:
        sock.sendall(pings)


@pytest.fixture
def deaf(script):
    """A URL of a server that neither reads nor sends."""
    with contextlib.ExitStack() as stack:

        def hold(sock):
            upgrade(sock)
            stack.enter_context(sock.dup())

        yield script(hold)


# Signals.

HANDLERS = """
import faulthandler, os, signal, sys, threading, time
from playfield.websocket.sync import connect

faulthandler.dump_traceback_later(30, exit=True)
echo, deaf = sys.argv[1:]

def interrupted(connection, call, inside, action, after=None):
    '''Runs `action` in a signal handler inside `call`, and `after` once it is done; prints what
    both do. A call that ends before the signal comes is made again.'''
    begun, done = [], []

    def handle(*_):
        if not begun and inside(connection):
            begun.append(True)
            try:
                done.append(type(action(connection)).__name__)
            except Exception as error:
                done.append(type(error).__name__)

    signal.signal(signal.SIGUSR1, handle)

    def interrupt():
        while not begun:
            if inside(connection):
                signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            time.sleep(0.01)
        while not done:
            time.sleep(0.01)
        if after is not None:
            after()

    thread = threading.Thread(target=interrupt)
    thread.start()
    while not begun:
        try:
            result = call(connection)
        except Exception as error:
            result = error
    thread.join()
    print(*done, type(result).__name__)
    connection.abort()

def receiving(connection):
    return connection._waiting is None

def sending(connection):
    return connection._ending[4] > 0

# The action ends the receive, or its timeout does.
for action, timeout in [
    (lambda c: c.close(), 20),
    (lambda c: c.abort(), 20),
    (lambda c: c.send("x"), 20),
    (lambda c: c.send_many(["x"]), 20),
    (lambda c: c.state, 0.2),
    (lambda c: c.ping().wait(20), 0.2),
    (lambda c: c.recv(), 0.2),
    (lambda c: c.wait_closed(0.01), 0.2),
]:
    connection = connect(echo, close_timeout=20)
    interrupted(connection, lambda c: c.recv(timeout=timeout), receiving, action)

for action in [
    lambda c: c.close(),
    lambda c: c.abort(),
    lambda c: c.send("x"),
    lambda c: c.send(["x"]),
    lambda c: c.ping(),
    lambda c: c.state,
]:
    connection = connect(deaf, close_timeout=0.05, compression=None)
    call = lambda c: c.send(bytes(30_000_000))
    interrupted(connection, call, sending, action, connection.abort)
"""


def test_a_signal_handler_may_use_the_connection_that_it_interrupts(server, deaf):
    output = run_program(HANDLERS, server(), deaf)
    assert output == [
        *("NoneType", "ConnectionClosedOK"),
        *("NoneType", "ConnectionClosedError"),
        *("NoneType", "str"),
        *("NoneType", "str"),
        *("State", "TimeoutError"),
        *("bool", "TimeoutError"),
        *("ConcurrencyError", "TimeoutError"),
        *("bool", "TimeoutError"),
        # Inside a send that the server does not take.
        *("NoneType", "ConnectionClosedError"),
        *("NoneType", "ConnectionClosedError"),
        *("ConcurrencyError", "ConnectionClosedError"),
        *("ConcurrencyError", "ConnectionClosedError"),
        *("ConcurrencyError", "ConnectionClosedError"),
        *("State", "ConnectionClosedError"),
    ]


CTRL_C = """
import faulthandler, os, signal, sys, threading, time
from playfield.websocket.sync import connect

faulthandler.dump_traceback_later(30, exit=True)
# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
url = sys.argv[1]

def interrupted(what, call, inside, **options):
    connection = connect(url, compression=None, close_timeout=None, **options)
    if what == "behind":
        threading.Thread(target=send_parts, args=(connection,), daemon=True).start()
        begun.wait()
    over = threading.Event()

    def interrupt():
        while not inside(connection):
            time.sleep(0.001)
        # Should it come before the call waits, the next one finds it there.
        while not over.wait(0.1):
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        try:
            call(connection)
        finally:
            over.set()
            thread.join()
    except KeyboardInterrupt:
        print(what)
    connection.abort()

begun = threading.Event()

def send_parts(connection):
    def parts():
        yield "a"
        begun.set()
        threading.Event().wait()
    try:
        connection.send(parts())
    except Exception:
        pass

def receiving(connection):
    return connection._waiting is None

def sending(connection):
    return connection._ending[4] > 0

interrupted("recv", lambda c: c.recv(), receiving)
interrupted("spin", lambda c: c.recv(), receiving, spin_us=100_000)
interrupted("timeout", lambda c: c.recv(timeout=20), receiving)
interrupted("many", lambda c: c.recv_many(), receiving)
interrupted("iteration", lambda c: list(c), receiving)
interrupted("send", lambda c: c.send(bytes(30_000_000)), sending)
interrupted("send_many", lambda c: c.send_many([bytes(30_000_000)]), sending)
interrupted("behind", lambda c: c.send("whole"), lambda c: True)
interrupted("close", lambda c: c.close(), lambda c: c._ending[1] is not None)
interrupted("wait_closed", lambda c: c.wait_closed(), lambda c: True)
interrupted("pong", lambda c: c.ping().wait(), lambda c: True)
os._exit(0)
"""


def test_ctrl_c_ends_every_wait(deaf):
    calls = ["recv", "spin", "timeout", "many", "iteration", "send", "send_many", "behind", "close"]
    assert run_program_with_output(CTRL_C, deaf) == [*calls, "wait_closed", "pong"]


def run_program_with_output(code, *arguments):
    """As `run_program`, for one that ends by `os._exit`."""
    return run_program("import functools; print = functools.partial(print, flush=True)\n" + code, *arguments)


# Servers.


def test_a_server_that_pings_and_does_not_read(script):
    connection = connect(script(flood), close_timeout=0.05)
    for _ in range(2):
        assert isinstance(in_thread(lambda: connection.recv(timeout=0.2)), TimeoutError)
    until(lambda: (connection._pump(0), connection._ending[4] > 0)[1])
    for _ in range(100):
        connection._pump(0)
        # The limit, and the one Pong that crossed it.
        assert connection._ending[4] <= (4 << 10) + 131
    assert in_thread(connection.close) is None
    assert connection.state is State.CLOSED


def test_a_ping_while_nothing_can_be_sent_is_answered_later(script):
    proceed = threading.Event()
    answers = []

    def server(sock):
        upgrade(sock)
        proceed.wait(20)
        sock.sendall(frame(9, b"first") * 2000 + frame(9, b"last") + frame(1, b"sent"))
        while True:
            opcode, payload = read_frame(sock)
            if opcode == 0x8A:
                answers.append(payload)
            if payload == b"last":
                sock.sendall(frame(1, b"answered"))

    connection = connect(script(server), close_timeout=0.05, compression=None)
    sender = threading.Thread(target=lambda: connection.send(bytes(20_000_000)))
    sender.start()
    until(lambda: connection._ending[4] > 64 << 10)
    proceed.set()
    assert in_thread(lambda: connection.recv(timeout=20)) == "sent"
    assert in_thread(lambda: connection.recv(timeout=20)) == "answered"
    sender.join()
    assert answers[-1] == b"last" and len(answers) < 2001
    connection.close()


def test_one_such_server_keeps_no_other_waiting(script):
    stuck = connect(script(flood), close_timeout=0.05)
    until(lambda: (stuck._pump(0), stuck._ending[4] > 0)[1])
    answers = []

    def ask(sock):
        upgrade(sock)
        for _ in range(3):
            sock.sendall(frame(9, b"hi"))
            answers.append(read_frame(sock))
        read_all(sock)

    connection = connect(script(ask), close_timeout=0.05)
    in_thread(lambda: until(lambda: len(answers) == 3))
    assert answers == 3 * [(0x8A, b"hi")]
    connection.close()
    stuck.abort()


def test_a_bomb_of_deflate_is_as_long_as_it_is_inflated(server):
    async def send(connection):
        await connection.send("x" * 65_536)
        await connection.send("x" * 65_537)
        await connection.wait_closed()

    with connect(server(send), max_size=65_536) as connection:
        assert connection.recv() == "x" * 65_536
        with pytest.raises(ConnectionClosedError) as error:
            connection.recv()
    assert isinstance(error.value.__cause__, PayloadTooBig)


def test_a_reset_is_the_cause(script):
    import socket
    import struct

    def reset(sock):
        upgrade(sock)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    connection = connect(script(reset))
    errors = []
    for _ in range(2):
        with pytest.raises(ConnectionClosedError) as error:
            connection.recv()
        assert isinstance(error.value.__cause__, ConnectionResetError)
        errors.append(error.value)
    # An exception that is raised again would carry the places of all times before.
    assert errors[0] is not errors[1]


# Messages in fragments.


@pytest.fixture
def recorded(script):
    """A server that notes what it gets: ``url, frames, proceed``."""
    frames, proceed = [], threading.Event()

    def record(sock):
        upgrade(sock)
        proceed.wait(20)
        while True:
            frames.append(read_frame(sock))

    yield script(record), frames, proceed
    proceed.set()


def test_nothing_comes_between_the_fragments_of_a_message(recorded):
    url, frames, proceed = recorded
    connection = connect(url, compression=None, close_timeout=0.05)
    begun, go = threading.Event(), threading.Event()

    def parts():
        yield "a"
        begun.set()
        go.wait()
        yield "b"

    # It is in the way of all others, until the server reads.
    big = threading.Thread(target=lambda: connection.send(bytes(20_000_000)))
    big.start()
    until(lambda: connection._ending[4] > 0)
    go.set()
    threads = [
        threading.Thread(target=target)
        for target in [
            lambda: connection.send(parts()),
            lambda: connection.send("whole"),
            lambda: connection.send_many(["m1", "m2"]),
            lambda: connection.send(["c", "d"]),
        ]
    ]
    for thread in threads:
        thread.start()
    proceed.set()
    for thread in [big, *threads]:
        thread.join(20)

    go.clear()
    begun.clear()
    fragmenting = threading.Thread(target=lambda: connection.send(parts()))
    fragmenting.start()
    begun.wait()
    waiting = [
        threading.Thread(target=lambda: connection.send("later")),
        threading.Thread(target=lambda: connection.send_many(["later"])),
        threading.Thread(target=lambda: connection.send(["later"])),
    ]
    for thread in waiting:
        thread.start()
    connection.ping()
    go.set()
    for thread in [fragmenting, *waiting]:
        thread.join(20)
    connection.close()
    until(lambda: frames and frames[-1][0] == 0x88)

    inside = None
    for opcode, _ in frames:
        if opcode & 0x08:
            continue
        assert (opcode & 0x0F == 0) == (inside is not None), frames
        inside = None if opcode & 0x80 else opcode
    assert inside is None
    assert len([1 for opcode, _ in frames if opcode & 0x0F in (1, 2)]) == 10


@pytest.mark.parametrize(
    "inner", [lambda c: c.send("x"), lambda c: c.send_many(["x"]), lambda c: c.send(["x"])]
)
def test_a_message_inside_a_message_is_refused(recorded, inner):
    url, frames, proceed = recorded
    proceed.set()
    connection = connect(url, compression=None, close_timeout=0.05)

    def parts():
        yield "a"
        with pytest.raises(ConcurrencyError, match="fragmented"):
            inner(connection)
        connection.pong()
        yield "b"

    assert in_thread(lambda: connection.send(parts())) is None
    assert in_thread(lambda: connection.send("after")) is None
    connection.close()
    until(lambda: frames and frames[-1][0] == 0x88)
    assert [opcode for opcode, _ in frames] == [0x01, 0x8A, 0x00, 0x80, 0x81, 0x88]


def test_whoever_waits_for_a_message_learns_that_it_will_not_come(recorded):
    url, _, proceed = recorded
    proceed.set()
    connection = connect(url, compression=None, close_timeout=0.05)
    begun = threading.Event()

    def parts():
        yield "a"
        begun.set()
        until(lambda: waiting.is_alive())
        raise LookupError

    results = []

    def wait():
        with pytest.raises(ConnectionClosed):
            connection.send("later")
        results.append("closed")

    waiting = threading.Thread(target=wait)

    def fragment():
        with pytest.raises(LookupError):
            connection.send(parts())
        results.append("raised")

    fragmenting = threading.Thread(target=fragment)
    fragmenting.start()
    begun.wait()
    waiting.start()
    fragmenting.join(20)
    waiting.join(20)
    assert sorted(results) == ["closed", "raised"]


# What calls leave behind.


def test_a_message_that_can_not_be_decoded_takes_no_other_with_it(script):
    def send(sock):
        upgrade(sock)
        sock.sendall(frame(2, b"a") + frame(2, b"b") + frame(2, b"\xff") + frame(2, b"c"))
        read_all(sock)

    connection = connect(script(send), close_timeout=0.05)
    until(lambda: (connection._pump(0), connection._waiting == 4)[1])
    assert connection.recv_many(decode=True) == ["a", "b"]
    with pytest.raises(ValueError):
        connection.recv_many(decode=True)
    assert connection.recv_many(decode=True) == ["c"]
    connection.close()


def test_limits_of_arguments(server):
    url = server()
    for spin_us in (-1, 100_001):
        with pytest.raises(ValueError, match="spin_us"):
            connect(url, spin_us=spin_us)
    with connect(url, spin_us=100_000) as connection:
        connection.send("x")
        with pytest.raises(ValueError, match="max"):
            connection.recv_many(max=0)
        assert connection.recv_many(max=1) == ["x"]
        with pytest.raises(ValueError):
            connection.recv(timeout=float("nan"))


def test_a_cork_shows_what_went_wrong_inside(server):
    connection = connect(server())
    with pytest.raises(LookupError) as error:
        with connection.cork():
            connection.send("x")
            connection.abort()
            raise LookupError
    assert error.value.__context__ is None
    with pytest.raises(ConnectionClosed):
        with connection.cork():
            pass
    connection = connect(server())
    with connection.cork():
        with connection.cork():
            connection.send("x")
        connection.send("y")
        assert connection._ending[4] == 0
    assert [connection.recv(), connection.recv()] == ["x", "y"]
    connection.close()


def test_a_thread_that_only_waits_for_a_pong_is_no_receiver(server):
    with connect(server()) as connection:
        waiter = threading.Thread(target=lambda: connection.wait_closed(20))
        waiter.start()
        for number in range(200):
            connection.send(str(number))
            assert connection.recv(timeout=10) == str(number)
    waiter.join()


# Forks.

FORK = """
import os, sys
from playfield.websocket import ConnectionClosedError, State
from playfield.websocket.sync import connect

connection = connect(sys.argv[1])
connection.send("before")
child = os.fork()
if child == 0:
    for call in [
        lambda: connection.send("x"),
        lambda: connection.send(["x"]),
        lambda: connection.send_many(["x"]),
        lambda: connection.recv(),
        lambda: connection.recv_many(),
        lambda: list(connection),
        lambda: connection.ping(),
        lambda: connection.pong(),
    ]:
        try:
            call()
        except ConnectionClosedError as error:
            assert "fork" in str(error.__cause__), error.__cause__
        else:
            os._exit(2)
    assert connection.state is State.CLOSED and connection.close_code == 1006
    assert connection.fileno() == -1 and connection.wait_closed()
    connection.close()
    connection.abort()
    with connect(sys.argv[1]) as own:
        own.send("own")
        assert own.recv() == "own"
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert connection.recv(timeout=10) == "before"
connection.send("after")
assert connection.recv(timeout=10) == "after"
connection.close()
print("parent")
"""


def test_a_fork_leaves_the_connection_to_the_parent(server):
    assert run_program(FORK, server()) == ["parent"]


# The interpreter's exit.

EXIT = """
import ssl, sys, threading
from playfield.websocket import _attendant
from playfield.websocket.sync import connect

_attendant.REST = 0.0
url, certificate, mode = sys.argv[1:]
context = ssl.create_default_context(cafile=certificate) if certificate else None
connections = [connect(url, ssl=context, compression=None) for _ in range(3)]

def receive(connection):
    begun.release()
    while True:
        connection.recv()

def send(connection):
    begun.release()
    while True:
        connection.send("x" * 1000)

def send_parts(connection):
    begun.release()
    def parts():
        while True:
            yield "x"
            threading.Event().wait(0.001)
    connection.send(parts())

begun = threading.Semaphore(0)
target = {"recv": receive, "send": send, "parts": send_parts, "nothing": None}[mode]
for connection in connections if target else ():
    threading.Thread(target=target, args=(connection,), daemon=True).start()
    begun.acquire()
threading.Event().wait(0.05)
"""


COMPUTING = """
import asyncio, faulthandler, sys, threading, time
from playfield.websocket import connect
from playfield.websocket import sync

faulthandler.dump_traceback_later(30, exit=True)
url, mode = sys.argv[1:]
begun = threading.Event()

def parts():
    yield "x"
    begun.set()
    while True:
        sum(range(100))

async def compute():
    async with connect(url) as connection:
        await connection.send("x")
        await connection.recv()
        sum(1 for _ in parts())

def run():
    if mode == "task":
        asyncio.run(compute())
    else:
        with sync.connect(url) as connection:
            getattr(connection, mode)(parts())

class Last:
    # Something that takes time after the end of the program.
    def __del__(self):
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            pass

sys.last = Last()
threading.Thread(target=run, daemon=True).start()
begun.wait()
"""


@pytest.mark.parametrize("mode", ["send", "send_many", "task"])
def test_the_interpreter_ends_well_while_a_daemon_thread_computes(server, mode):
    command = [sys.executable, "-c", COMPUTING, server(), mode]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    from certificates import make_certificate

    return make_certificate(tmp_path_factory.mktemp("exit"))


@pytest.mark.parametrize("secure", [False, True], ids=["ws", "wss"])
def test_the_interpreter_ends_well_while_daemon_threads_are_busy(server, certificate, secure):
    import asyncio
    import contextlib
    import ssl

    async def pour(connection):
        async def drain():
            async for _ in connection:
                pass

        draining = asyncio.ensure_future(drain())
        with contextlib.suppress(ConnectionClosed, Exception):
            while True:
                await connection.ping()
                await connection.send("x" * 100)
                await asyncio.sleep(0.001)
        draining.cancel()

    context = None
    if secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
    url = server(pour, ssl=context)
    arguments = [url, certificate[0] if secure else ""]
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", EXIT, *arguments, mode], stderr=subprocess.PIPE, text=True
        )
        for mode in ("recv", "send", "nothing" if secure else "parts")
    ]
    for program in programs:
        _, errors = program.communicate(timeout=60)
        assert (program.returncode, errors) == (0, "")


# From elsewhere.

METHODS = {
    "send": lambda c: c.send("x"),
    "send_parts": lambda c: c.send(["x", "y"]),
    "send_many": lambda c: c.send_many(["x"]),
    "cork": lambda c: c.cork().__enter__().cork().__enter__() and None,
    "recv": lambda c: c.recv(timeout=1),
    "recv_many": lambda c: c.recv_many(timeout=1),
    "recv_streaming": lambda c: list(c.recv_streaming()),
    "next": lambda c: next(iter(c)),
    "ping": lambda c: c.ping(),
    "pong": lambda c: c.pong(),
    "close": lambda c: c.close(),
    "abort": lambda c: c.abort(),
    "wait_closed": lambda c: c.wait_closed(0),
    "fileno": lambda c: c.fileno(),
    "state": lambda c: c.state,
    "open": lambda c: c.open,
    "closed": lambda c: c.closed,
    "close_code": lambda c: c.close_code,
    "close_reason": lambda c: c.close_reason,
    "latency": lambda c: c.latency,
    "id": lambda c: c.id,
    "local_address": lambda c: c.local_address,
    "remote_address": lambda c: c.remote_address,
    "request": lambda c: c.request,
    "response": lambda c: c.response,
    "subprotocol": lambda c: c.subprotocol,
    "protocol": lambda c: c.protocol.state,
    "socket": lambda c: c.socket.getpeername(),
}

RAISES_ONCE_CLOSED = {
    *("send", "send_parts", "send_many", "recv", "recv_many", "recv_streaming", "ping", "pong")
}


def test_every_method_is_known_here():
    public = {name for name in dir(_sync.ClientConnection) if not name.startswith("_")}
    assert public - set(METHODS) <= {"logger"}


@pytest.mark.parametrize("name", METHODS)
def test_each_method_after_the_end(server, name):
    for end in ("close", "abort"):
        connection = connect(server())
        getattr(connection, end)()
        result = in_thread(lambda: METHODS[name](connection))
        if name in RAISES_ONCE_CLOSED or (name, end) == ("next", "abort"):
            assert isinstance(result, ConnectionClosed), result
        elif name == "next":
            assert isinstance(result, StopIteration), result
        else:
            assert not isinstance(result, Exception), result


@pytest.mark.parametrize("name", METHODS)
def test_each_method_while_another_thread_receives_or_sends(server, name):
    connection = connect(server(), close_timeout=1)
    ended = []

    def receive():
        try:
            while True:
                connection.recv()
        except ConnectionClosed:
            ended.append(True)

    thread = threading.Thread(target=receive)
    thread.start()
    until(lambda: connection._waiting is None)
    result = in_thread(lambda: METHODS[name](connection))
    if name in ("recv", "recv_many", "recv_streaming", "next"):
        assert isinstance(result, ConcurrencyError), result
    else:
        assert not isinstance(result, Exception), result
    connection.close()
    thread.join(20)
    assert ended


AT_EXIT = """
import atexit, faulthandler, sys, threading

faulthandler.dump_traceback_later(30, exit=True)

def late():
    # This runs after the package has seen the exit.
    for call in [
        lambda: connection.send("x"),
        lambda: connection.send(["a", "b"]),
        lambda: connection.send_many(["x"]),
        lambda: connection.recv(timeout=5),
        lambda: connection.recv_many(timeout=5),
        lambda: connection.ping(),
        lambda: connection.pong(),
        lambda: connection.wait_closed(0),
        lambda: connection.state,
        lambda: connection.close(),
        lambda: connect(sys.argv[1]).close(),
    ]:
        call()
    print("well")

atexit.register(late)
from playfield.websocket.sync import connect
connection = connect(sys.argv[1])
"""


def test_the_exiting_thread_may_use_a_connection(server):
    assert run_program(AT_EXIT, server()) == ["well"]


def test_a_feed_raises_without_the_places_of_times_before(run):
    from playfield._feed import Feed

    async def main():
        feed = Feed()
        feed.end(LookupError())
        depths = set()
        for _ in range(3):
            with pytest.raises(LookupError) as error:
                await feed.__anext__()
            depths.add(len(error.traceback))
        assert len(depths) == 1

    run(main())

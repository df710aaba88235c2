"""Blocking connections that nobody reads just now: their pings, pongs and ends."""

import threading
import time

from conftest import upgrade
from test_sync_robust import frame, in_thread, read_frame, run_program, until

from playfield.websocket import _attendant
from playfield.websocket.sync import connect


def test_a_close_is_answered_while_nobody_receives(script):
    answers = []

    def close(sock):
        upgrade(sock)
        sock.sendall(frame(8, b"\x03\xe8"))
        answers.append(read_frame(sock)[0])

    url = script(close)
    begun = time.monotonic()
    for number in range(1, 6):
        connection = connect(url, ping_interval=None)
        in_thread(lambda: until(lambda: len(answers) == number))
        connection.close()
    assert answers == 5 * [0x88]
    # Once a second would be too late.
    assert time.monotonic() - begun < 2


def test_pings_are_sent_in_time_while_nobody_receives(server):
    begun = time.monotonic()
    with connect(server(), ping_interval=0.05) as connection:
        round_trips = []
        while len(round_trips) < 5:
            until(lambda: connection.latency not in (0.0, *round_trips))
            round_trips.append(connection.latency)
    assert time.monotonic() - begun < 3
    assert min(round_trips) < _attendant.REST / 2


def test_pings_are_sent_in_time_while_a_thread_receives(server):
    begun = time.monotonic()
    with connect(server(), ping_interval=0.05) as connection:
        receiver = threading.Thread(target=lambda: list(connection))
        receiver.start()
        round_trips = []
        while len(round_trips) < 5:
            until(lambda: connection.latency not in (0.0, *round_trips))
            round_trips.append(connection.latency)
        assert time.monotonic() - begun < 3
        connection.close()
        receiver.join()


def test_nothing_is_kept_of_connections_that_ended(server):
    url, attendant = server(), _attendant.attendant
    before = len(attendant.attended)
    for _ in range(200):
        connect(url).close()
    assert len(attendant.attended) <= before
    assert len(attendant.due) <= 2 * before + 70


INTERRUPTED = """
import gc, os, sys
from playfield.websocket.sync import connect

url = sys.argv[1]
connect(url).close()

def descriptors():
    return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))

def interrupt(at):
    step = 0
    def trace(frame, event, argument):
        nonlocal step
        step += event == "line"
        if event == "line" and step == at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace
    sys.settrace(trace)
    try:
        connection = connect(url)
    except KeyboardInterrupt:
        pass
    else:
        sys.settrace(None)
        connection.close()
    sys.settrace(None)
    return step >= at

# What is raised in a callback of the interpreter's interrupts nobody.
sys.unraisablehook = lambda unraisable: None
before, at = descriptors(), 0
while interrupt(at := at + 1):
    if descriptors() > before and (gc.collect(), descriptors())[1] > before:
        print(at, end=" ")
        before = descriptors()
print("interrupted" if at > 100 else at)
"""


def test_an_interrupted_connect_leaks_no_descriptor(server):
    # It is interrupted at each line of Python.
    url = server().replace("localhost", "127.0.0.1")
    assert run_program(INTERRUPTED, url) == ["interrupted"]

"""Pings, pongs and Close frames of blocking connections that nobody reads just now."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import selectors
import socket
import threading
import time
import weakref
from typing import Any

__all__ = ["Attendant"]

# How long a connection is left alone that a program receives from, in seconds. What comes then is
# answered this much later if the program stops to receive.
REST = 0.05

# How often a connection whose queue is full is looked at, in seconds.
_FULL_REST = 1.0

# How long the thread sleeps at most, in seconds. It ends after that if there is no connection.
_SLEEP_MAX = 5.0


class _Attended:
    """A connection, as the attendant has it."""

    def __init__(self, connection: Any) -> None:
        self.connection = weakref.ref(connection)
        self.descriptor: int = connection.fileno()
        #: How often a thread had begun to receive, when it was last looked at.
        self.receives = 0
        #: When it was last read, as `time.monotonic()` has it.
        self.read_at = 0.0


class Attendant:
    """A thread that reads for connections that nobody reads just now, and sends their pings.

    It waits for all of them at once. It wakes with the program's own thread whenever one becomes
    readable, so it rests from each that is being received from.
    """

    selector: selectors.BaseSelector | None = None

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin, also in the child of a fork: the thread and the connections are the parent's."""
        # A signal handler may connect or close inside what it has interrupted.
        self.lock = threading.RLock()
        self.attended: set[_Attended] = set()
        if self.selector is not None:
            self.selector.close()
            self.waker.close()
            self.wakes.close()
        self.selector = None
        self.thread: threading.Thread | None = None
        # When a connection is to be looked at, or its ping is due: `(when, number, which, ping)`.
        self.due: list[tuple[float, int, _Attended, bool]] = []
        self.numbers = itertools.count()
        self.sleeps_until = 0.0
        self.added_at = 0.0

    def add(self, connection: Any) -> None:
        """Look after a connection."""
        attended = _Attended(connection)
        if attended.descriptor < 0:
            return  # It is lost already.
        connection._attended = attended
        with self.lock:
            self.added_at = time.monotonic()
            self.attended.add(attended)
            if self.selector is None:
                self.waker, self.wakes = socket.socketpair()
                self.waker.setblocking(False)
                self.wakes.setblocking(False)
                self.selector = selectors.DefaultSelector()
                self.selector.register(self.wakes, selectors.EVENT_READ)
            # One that is closed soon, or received from, wakes nobody.
            self._at(self.added_at + REST, attended, False)
            if (ping_at := connection._ping_due()) is not None:
                self._at(ping_at, attended, True)
            if self.thread is None or not self.thread.is_alive():
                self.thread = threading.Thread(
                    target=self.run, name="playfield-keepalive", daemon=True
                )
                # An interpreter that exits starts no thread.
                with contextlib.suppress(RuntimeError):
                    self.thread.start()

    def discard(self, connection: Any) -> None:
        """Look after a connection no more."""
        if connection._attended is not None:
            with self.lock:
                self._forget(connection._attended)

    def _forget(self, attended: _Attended) -> None:
        self.attended.discard(attended)
        self._disarm(attended)

    def _arm(self, attended: _Attended) -> None:
        """Has the thread wake once the connection is readable."""
        assert self.selector is not None
        if attended not in self.attended:
            return
        descriptor = attended.descriptor
        # The number may have been that of a connection which was closed, and is forgotten later.
        if descriptor in self.selector.get_map():
            self.selector.unregister(descriptor)
        with contextlib.suppress(OSError, ValueError):
            self.selector.register(descriptor, selectors.EVENT_READ, attended)

    def _disarm(self, attended: _Attended) -> None:
        if self.selector is None:
            return  # After a fork.
        key = self.selector.get_map().get(attended.descriptor)
        if key is not None and key.data is attended:
            self.selector.unregister(attended.descriptor)

    def _at(self, when: float, attended: _Attended, ping: bool) -> None:
        if len(self.due) > 2 * len(self.attended) + 64:
            # Connections that were closed soon.
            self.due = [due for due in self.due if due[2] in self.attended]
            heapq.heapify(self.due)
        heapq.heappush(self.due, (when, next(self.numbers), attended, ping))
        if when < self.sleeps_until:
            self.sleeps_until = when
            with contextlib.suppress(OSError):
                self.waker.send(b"-")

    def run(self) -> None:
        selector = self.selector
        assert selector is not None
        while True:
            with self.lock:
                now = time.monotonic()
                until = now + _SLEEP_MAX
                if self.due:
                    until = min(until, self.due[0][0])
                self.sleeps_until = until
            events = selector.select(max(0.0, until - now))
            with self.lock:
                self.sleeps_until = 0.0
            for key, _ in events:
                if key.data is None:
                    with contextlib.suppress(OSError):
                        self.wakes.recv(4096)
                else:
                    with self.lock:
                        self._disarm(key.data)
                    self._each(key.data, self._read)
            now = time.monotonic()
            while True:
                with self.lock:
                    if not self.due or self.due[0][0] > now:
                        break
                    _, _, attended, ping = heapq.heappop(self.due)
                if ping:
                    self._each(attended, self._ping)
                else:
                    with self.lock:
                        self._arm(attended)
            if now - self.added_at > _SLEEP_MAX and not events:
                with self.lock:
                    for attended in [one for one in self.attended if one.connection() is None]:
                        self._forget(attended)
                    if not self.attended:
                        self.thread = None
                        return

    def _each(self, attended: _Attended, work: Any) -> None:
        connection = attended.connection()
        try:
            if connection is not None and attended in self.attended and not connection._is_lost:
                work(connection, attended)
                return
        except Exception:
            # It is lost; the program learns it from its next call.
            pass
        with self.lock:
            self._forget(attended)

    def _read(self, connection: Any, attended: _Attended) -> None:
        """Takes what has come, unless the program does."""
        waiting, receives = connection._waiting, connection._receives
        is_received = receives != attended.receives and connection._keepalive is None
        attended.receives = receives
        rest = REST
        if waiting is not None and not is_received:
            if waiting >= connection._queue_max:
                rest = _FULL_REST
            elif connection._pump(0):
                # A server that sends all the time takes no more than one read in each rest.
                now = time.monotonic()
                rest = max(0.0, attended.read_at + REST - now)
                attended.read_at = now
        if connection._is_lost:
            with self.lock:
                self._forget(attended)
        elif rest == 0.0:
            with self.lock:
                self._arm(attended)
        else:
            with self.lock:
                self._at(time.monotonic() + rest, attended, False)

    def _ping(self, connection: Any, attended: _Attended) -> None:
        connection._tick()
        if (ping_at := connection._ping_due()) is not None:
            with self.lock:
                self._at(ping_at, attended, True)


attendant = Attendant()
os.register_at_fork(after_in_child=attendant.reset)

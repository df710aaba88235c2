"""Runs the client tests of `websockets` against this package.

    python run.py SOURCE [--known FILE] [NAME...]

SOURCE is a checkout of `websockets` at the tag in `TAG`: its distribution on PyPI has no tests of
its clients. The tests that FILE lists are left out. Prints one line for each test: `ok`, `skipped`
or `failed`, its name, and why.
"""

import asyncio
import os
import pathlib
import signal
import socket
import sys
import types
import unittest

TAG = "17.0.1"

#: The modules, and the classes that test a client.
TESTED = {
    "tests.asyncio.test_client": None,
    "tests.sync.test_client": None,
    "tests.asyncio.test_connection": ["ClientConnectionTests"],
    "tests.sync.test_connection": ["ClientConnectionTests"],
}


def prepare(source):
    """Puts this package in the place of the clients of `websockets`, whose servers stay."""
    # Their unit of time is 0.1 s by default.
    os.environ.setdefault("WEBSOCKETS_TESTS_TIMEOUT_FACTOR", "20")
    sys.path[:0] = [str(source / "src"), str(source)]
    import websockets.asyncio.client
    import websockets.asyncio.connection
    import websockets.sync.client
    import websockets.sync.connection

    import playfield.websocket._async as ours
    import playfield.websocket._sync as ours_sync

    theirs = websockets.asyncio.client
    theirs.connect, theirs.unix_connect = ours.connect, ours.unix_connect
    theirs.ClientConnection = ours.ClientConnection
    theirs = websockets.sync.client
    theirs.connect, theirs.unix_connect = ours_sync.connect, ours_sync.unix_connect
    theirs.ClientConnection = ours_sync.ClientConnection
    return ours, ours_sync


def opening():
    """A handshake that is over."""
    from playfield import _playfield

    handshake = _playfield.Handshake("localhost", "/", [], [], None)
    head = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
    return types.SimpleNamespace(handshake=handshake, head=head)


OPTIONS = {
    "ping_interval": 20,
    "ping_timeout": 20,
    "close_timeout": 0.04,
    "receive_timeout": None,
    "max_queue": 16,
    "write_limit": 32768,
}


def over_pairs(ours, ours_sync):
    """Has the tests of connections make ours, over a pair of sockets."""
    import tests.asyncio.test_connection as asynchronous
    import tests.sync.test_connection as blocking
    from tests.utils import MS

    options = {**OPTIONS, "close_timeout": 2 * MS}

    async def set_up(self):
        self.loop = asyncio.get_running_loop()
        own, remote = socket.socketpair()
        own.setblocking(False)
        opened = opening()
        self.connection = ours.ClientConnection(
            self.loop,
            own,
            opened.handshake,
            max_size=2**20,
            max_queue=options["max_queue"],
            write_limit=options["write_limit"],
        )
        self.connection._set_up(self.loop, own, opened, options)
        own.close()
        self.connection._start(b"")
        self.transport = None
        protocol = asynchronous.RecordingProtocol(self.REMOTE)
        _, self.remote_connection = await self.loop.create_connection(
            lambda: asynchronous.InterceptingConnection(protocol), sock=remote
        )

    asynchronous.ClientConnectionTests.asyncSetUp = set_up

    def set_up_blocking(self):
        own, remote = socket.socketpair()
        opened = opening()
        self.connection = ours_sync.ClientConnection(
            own, opened.handshake, max_size=2**20, max_queue=options["max_queue"], spin_us=0
        )
        self.connection._set_up(own, opened, options)
        own.close()
        self.connection._start(b"")
        ours_sync.attendant.add(self.connection)
        protocol = blocking.RecordingProtocol(self.REMOTE)
        self.remote_connection = blocking.InterceptingConnection(remote, protocol)

    blocking.ClientConnectionTests.setUp = set_up_blocking


#: How long a test may take, in seconds.
TIMEOUT = 10


class TooLong(BaseException):
    """A test did not end in time."""


def give_up(*_):
    raise TooLong(f"no end within {TIMEOUT} s")


class Result(unittest.TestResult):
    """Prints each result."""

    def startTest(self, test):
        super().startTest(test)
        self.parts = set()
        signal.setitimer(signal.ITIMER_REAL, TIMEOUT)

    def stopTest(self, test):
        super().stopTest(test)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def tell(self, word, test, why=""):
        name = test.id().removeprefix("tests.")
        print(word, name, why, flush=True)

    def addSuccess(self, test):
        self.tell("ok", test)

    def addSkip(self, test, reason):
        self.tell("skipped", test, reason)

    def addError(self, test, error):
        why = str(error[1]).strip().splitlines() or [""]
        self.tell("failed", test, f"{error[0].__name__}: {why[0][:160]}")

    addFailure = addError

    def addSubTest(self, test, subtest, error):
        if error is not None and test.id() not in self.parts:
            self.parts.add(test.id())
            self.addError(test, error)

    def addUnexpectedSuccess(self, test):
        self.tell("failed", test, "it was expected to fail")

    def addExpectedFailure(self, test, error):
        self.tell("ok", test)


def main():
    ours, ours_sync = prepare(pathlib.Path(sys.argv[1]).resolve())
    names, known = sys.argv[2:], set()
    if names[:1] == ["--known"]:
        known = set(pathlib.Path(names[1]).read_text().splitlines())
        names = names[2:]
    loader = unittest.defaultTestLoader
    modules = {name: __import__(name, fromlist=["*"]) for name in TESTED}
    over_pairs(ours, ours_sync)
    suite = unittest.TestSuite()
    for name, classes in TESTED.items():
        module = modules[name]
        if classes is None:
            suite.addTests(loader.loadTestsFromModule(module))
        for one in classes or ():
            suite.addTests(loader.loadTestsFromTestCase(getattr(module, one)))

    def each(tests):
        for test in tests:
            if isinstance(test, unittest.TestSuite):
                yield from each(test)
            elif test.id().removeprefix("tests.") not in known:
                if not names or any(name in test.id() for name in names):
                    yield test

    signal.signal(signal.SIGALRM, give_up)
    unittest.TestSuite(each(suite)).run(Result())
    # A test that was given up may leave a thread that waits forever.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()

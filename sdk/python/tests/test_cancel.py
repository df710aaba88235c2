"""Connecting is canceled at every step of the event loop: the cancellation is never lost, and what was
opened is closed."""

import asyncio
import ssl
import urllib.request

import pytest
from certificates import make_certificate
from conftest import Gate, _Loop

import playfield
from playfield.websocket import connect

# More steps than connecting takes.
STEPS_MAX = 2000


class Stepping(asyncio.SelectorEventLoop):
    """Calls ``act`` before its step ``at``. A step is a callback: each turn of each task is one."""

    def __init__(self, at, act):
        super().__init__()
        self.at, self.act, self.step = at, act, 0

    def call_soon(self, callback, *arguments, context=None):
        return super().call_soon(self._one, callback, arguments, context=context)

    async def sock_recv(self, sock, n):
        # The server may be that fast, and then there is no step.
        await asyncio.sleep(0)
        return await super().sock_recv(sock, n)

    async def sock_sendall(self, sock, data):
        await asyncio.sleep(0)
        return await super().sock_sendall(sock, data)

    def _one(self, callback, arguments):
        if self.step == self.at:
            self.act(self)
        self.step += 1
        callback(*arguments)


def interrupted(make, how):
    """What became of a connection whose task ``how(loop, task)`` has interrupted before each step, until
    there was nothing left to interrupt."""
    for at in range(STEPS_MAX):
        interrupts = []

        def act(loop):
            if not task.done():
                interrupts.append(how(loop, task))

        loop = Stepping(at, act)
        try:

            async def main():
                async with make():
                    # The connection is there: nothing else is to be interrupted.
                    loop.at = -1

            task = loop.create_task(main())
            try:
                loop.run_until_complete(asyncio.wait({task}, timeout=20))
                assert task.done(), f"interrupted at step {at}, it hangs"
                # The rest of what was canceled.
                rest = asyncio.all_tasks(loop)
                if rest:
                    loop.run_until_complete(asyncio.wait(rest, timeout=20))
            finally:
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()
        if not interrupts:
            return
        yield at, task
    raise AssertionError("connecting has too many steps")


def time_is_over(loop):
    """Has the timer of ``open_timeout=3600`` expire."""
    for timer in loop._scheduled:
        if timer.when() > loop.time() + 3000 and not timer.cancelled():
            callback, arguments = timer._callback, timer._args
            timer.cancel()
            callback(*arguments)


def cancel(loop, task):
    task.cancel()


def expire_and_cancel(loop, task):
    time_is_over(loop)
    task.cancel()


def cancel_and_expire(loop, task):
    task.cancel()
    time_is_over(loop)


@pytest.fixture
def watched():
    """The way to a server that knows which connections are open: ``watched(address)`` is an address,
    and ``watched.settle()`` waits until all have ended."""
    loop = _Loop()
    gates = []

    def through(address):
        gates.append(loop.call(Gate().open(address)))
        return gates[-1].address

    async def settle():
        while any(gate.writers for gate in gates):
            await asyncio.sleep(0.01)

    through.settle = lambda: loop.call(settle())
    yield through
    for gate in gates:
        loop.call(gate.close())
    loop.stop()


def address(url):
    return url.split("://")[1].rstrip("/").replace("localhost", "127.0.0.1")


@pytest.fixture
def targets(server, watched, tmp_path):
    """What connects, by name."""
    plain = watched(address(server()))
    certificate, key = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure = watched(address(server(ssl=context))).replace("127.0.0.1", "localhost")
    trusting = ssl.create_default_context(cafile=certificate)
    options = {"open_timeout": 3600, "proxy": None}
    return {
        "plain": lambda: connect(f"ws://{plain}/", **options),
        # It has two addresses, and the first refuses.
        "name": lambda: connect(f"ws://{plain.replace('127.0.0.1', 'localhost')}/", **options),
        "tls": lambda: connect(f"wss://{secure}/", ssl=trusting, **options),
    }


@pytest.mark.parametrize("target", ["plain", "name", "tls"])
def test_a_canceled_connect_is_canceled(targets, watched, target):
    steps = [(at, task.cancelled()) for at, task in interrupted(targets[target], cancel)]
    assert len(steps) > 2 and all(canceled for _, canceled in steps), steps
    watched.settle()


@pytest.mark.parametrize("how", [expire_and_cancel, cancel_and_expire])
def test_a_cancellation_wins_over_the_timeout(targets, watched, how):
    steps = [(at, task.cancelled()) for at, task in interrupted(targets["name"], how)]
    assert len(steps) > 2 and all(canceled for _, canceled in steps), steps
    watched.settle()


def test_a_timeout_is_one(targets, watched):
    errors = {}
    for at, task in interrupted(targets["name"], lambda loop, task: time_is_over(loop)):
        errors[at] = task.exception()
    late = [at for at, error in errors.items() if isinstance(error, TimeoutError)]
    # Before the timer is set, and once the connection is there, nothing is late.
    assert len(late) > 2
    assert all(error is None or at in late for at, error in errors.items()), errors
    watched.settle()


def test_a_canceled_client_is_canceled(controls, watched):
    with urllib.request.urlopen(controls + "/link", timeout=20) as answer:
        node = watched(answer.read().decode())

    def make():
        return playfield.connect(f"tcp://{node}", open_timeout=3600)

    steps = [(at, task.cancelled()) for at, task in interrupted(make, cancel)]
    assert len(steps) > 2 and all(canceled for _, canceled in steps), steps
    watched.settle()



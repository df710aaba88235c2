"""The connection of a session: its socket and its timers, on an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from . import _playfield
from ._errors import SessionEnded, closed
from ._limit import within
from ._token import given_token
from ._values import log

T = TypeVar("T")

#: The most bytes of a read.
_INPUT_BYTES = 64 << 10


class _Input(threading.local):
    """Where a thread's connections are read to, one at a time. Bytes of the size that asyncio reads
    would be mapped and unmapped by the system each time."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(_INPUT_BYTES))


_input = _Input()


class Socket(asyncio.BufferedProtocol):
    """One connection, until it ends."""

    transport: asyncio.Transport

    def __init__(self, link: Link) -> None:
        self._link = link
        self._waiters: list[asyncio.Future[None]] = []
        self._is_paused = False
        #: What has come before the link uses it.
        self.early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _input.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._link._received(self, _input.buffer[:nbytes].tobytes())

    def connection_lost(self, error: Exception | None) -> None:
        self.resume_writing()
        self._link._received(self, None)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        waiters, self._waiters = self._waiters, []
        wake(waiters)

    async def drain(self) -> None:
        """Waits while too much is unsent."""
        while self._is_paused:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter


class Link:
    """Carries a session's bytes, over one connection after the other, and hands on its events."""

    def __init__(
        self,
        core: _playfield.Core,
        ssl: Any,
        give_token: Callable[[], Any] | None,
        token_timeout: float,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._core = core
        self._ssl = ssl
        self._give_token = give_token
        self._token_timeout = token_timeout
        self._writer: Socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        # It restores lost connections.
        self._task: asyncio.Task[None]
        # The connection is lost, or the session is over.
        self._is_down = asyncio.Event()
        self._waiting: list[asyncio.Future[Any]] = []
        self._error: Exception | None = None

    def _handle(self, event: Any) -> None:
        raise NotImplementedError

    def _over(self, error: Exception) -> None:
        raise NotImplementedError

    def _attempt_failed(self, error: Exception, is_last: bool) -> None:
        raise NotImplementedError

    async def _open(self) -> Socket:
        host, port, secure = self._core.address
        context = (self._ssl or True) if secure else None
        _, socket = await self._loop.create_connection(
            lambda: Socket(self), host, int(port), ssl=context
        )
        return socket

    def _use(self, socket: Socket) -> None:
        """Goes on over this connection."""
        self._is_down.clear()
        self._writer = socket
        self._core.received(time.monotonic(), socket.early)
        if socket.transport.is_closing():
            self._core.ended(time.monotonic())
        self._advance()

    def _received(self, socket: Socket, data: bytes | None) -> None:
        """Bytes have come, or the connection has ended."""
        if socket is not self._writer:
            socket.early += data or b""
            return
        if data is None:
            self._core.ended(time.monotonic())
        else:
            self._core.received(time.monotonic(), data)
        self._turn()

    async def _run(self) -> None:
        try:
            while not self._core.is_finished:
                await self._is_down.wait()
                if self._core.is_away:
                    await self._restore()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._writer is not None:
                self._writer.transport.close()
            self._core.give_up()
            self._poll()
            self._over(closed())

    async def _restore(self) -> None:
        """Connects again, as often as it takes."""
        if self._writer is not None:
            self._writer.transport.abort()
        core, late = self._core, "the node did not answer"
        while True:
            step, limit = core.step(time.monotonic())
            self._poll()
            if core.is_finished:
                return
            if step == "wait":
                await asyncio.sleep(max(0.0, (core.due_at or 0.0) - time.monotonic()))
                continue
            try:
                if step == "token":
                    assert self._give_token is not None
                    core.set_token(await given_token(self._give_token, self._token_timeout))
                    continue
                socket = await in_time(self._open(), limit, late, drop)
            except Exception as error:
                self._attempt_failed(error, core.attempt_failed(time.monotonic()))
            else:
                core.reconnect()
                return self._use(socket)

    def _advance(self) -> None:
        """Takes the time."""
        self._timer = None
        if self._core.is_finished or self._core.is_away:
            return
        self._core.advance(time.monotonic())
        self._turn()

    def _poll(self) -> None:
        core = self._core
        while (event := core.poll()) is not None:
            try:
                self._handle(event)
            except Exception:
                log.exception("an event could not be handled: %r", event)

    def _turn(self) -> None:
        """Hands on what has happened, and writes what follows from it."""
        self._poll()
        waiting, self._waiting = self._waiting, []
        wake(waiting)
        self._write()
        if self._core.is_away or self._core.is_finished:
            if self._core.is_away and self._writer is not None:
                self._writer.transport.abort()
            self._is_down.set()

    def _write(self) -> None:
        core = self._core
        if self._writer is not None and not core.is_away:
            data = core.take_output()
            if data and not self._writer.transport.is_closing():
                self._writer.transport.write(data)
        due = core.due_at
        # A timer that comes too early finds out itself.
        if due is not None and (self._timer is None or due < self._due):
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._advance)

    async def _news(self) -> None:
        """Waits until something was received, or the connection's state has changed."""
        future = self._loop.create_future()
        self._waiting.append(future)
        await future

    async def _ready(self) -> None:
        """Waits while too much is unconfirmed."""
        while self._core.is_full and not self._core.is_finished:
            await self._news()

    async def _flush(self) -> None:
        if self._core.is_finished:
            raise (self._why_over() or closed()).with_traceback(None)
        self._write()
        if self._writer is not None:
            await self._writer.drain()

    def _why_over(self) -> Exception | None:
        return self._error


def drop(socket: Socket) -> None:
    """Closes a connection that nobody waits for any more."""
    socket.transport.abort()


def wake(waiters: list[asyncio.Future[Any]]) -> None:
    """Ends the waits for something that has happened."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


async def in_time(
    doing: Awaitable[T], limit: float, what: str, drop: Callable[[T], Any] = lambda result: None
) -> T:
    """Awaits something for at most ``limit`` seconds. What comes too late is dropped."""
    try:
        return await within(None if limit == float("inf") else limit, doing, drop)
    except TimeoutError:
        raise TimeoutError(f"{what} in {limit:g} s") from None

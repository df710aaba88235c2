"""A bounded queue of what has come, to be taken one by one."""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Callable
from typing import Any

#: How many items wait for a program that does not take them. Past it, the oldest is dropped.
WAITING_MAX = 1024


class Feed:
    """An asynchronous iterator. It ends, or raises what has ended it, once all is taken."""

    def __init__(self, dropped: Callable[[Any], None] | None = None) -> None:
        self._items: deque[Any] = deque()
        self._waiters: deque[asyncio.Future[Any]] = deque()
        self._is_over = False
        self._error: Exception | None = None
        self._dropped = dropped
        #: How many were dropped because too many waited.
        self.dropped = 0

    def put(self, item: Any) -> None:
        if self._is_over:
            return
        if len(self._items) >= WAITING_MAX:
            oldest = self._items.popleft()
            self.dropped += 1
            if self._dropped is not None:
                self._dropped(oldest)
        self._items.append(item)
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        if not self._is_over:
            self._is_over, self._error = True, error
            self._wake()

    def _wake(self) -> None:
        """Wakes the first that waits, or all at the end."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                if not self._is_over:
                    return

    def __aiter__(self) -> Feed:
        return self

    async def __anext__(self) -> Any:
        await self.ready()
        return self.take()

    async def ready(self) -> None:
        """Waits until there is something to take."""
        while not self._items and not self._is_over:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                # Another may take what this one was woken for.
                if waiter.done() and not waiter.cancelled() and self._items:
                    self._wake()
                raise

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come."""
        return self._is_over

    def take_all(self) -> list[Any]:
        """What has come, for who takes it in another way from now on."""
        items = []
        while self._items:
            items.append(self._items.popleft())
        return items

    def take(self, is_over: bool = True) -> Any:
        """What has come, without waiting for it, or the end; raises ``queue.Empty`` if it is not over.
        Any thread may take."""
        try:
            return self._items.popleft()
        except IndexError:
            pass
        if not is_over:
            raise queue.Empty
        if self._error is None:
            raise StopAsyncIteration
        # It is raised for each that waits: its traceback must not grow.
        raise self._error.with_traceback(None)

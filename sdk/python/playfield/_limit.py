"""Limits of time.

``asyncio.wait_for`` is none before Python 3.12: it loses a cancellation that meets the end of what it
waits for, so that Ctrl-C has no effect.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

__all__ = ["within"]

T = TypeVar("T")


def _nothing(result: Any) -> None:
    pass


if sys.version_info >= (3, 11):

    async def within(
        seconds: float | None, doing: Awaitable[T], drop: Callable[[T], Any] = _nothing
    ) -> T:
        """Await ``doing`` for at most so many seconds; ``None`` is no limit.

        If nobody gets the result, as this was canceled or was too late, it goes to ``drop``. Raises
        ``TimeoutError``, unless the task is canceled at the same time.
        """
        async with asyncio.timeout(seconds):
            return await doing

else:

    async def within(
        seconds: float | None, doing: Awaitable[T], drop: Callable[[T], Any] = _nothing
    ) -> T:
        # A task does not know how often it was canceled, so a timer must cancel another one.
        task = asyncio.ensure_future(doing)
        try:
            await asyncio.wait({task}, timeout=seconds)
            if task.done():
                return task.result()
        except asyncio.CancelledError:
            _end(task, drop)
            raise
        _end(task, drop)
        # The program finds all as it was.
        await asyncio.wait({task})
        raise TimeoutError


def _end(task: asyncio.Future[T], drop: Callable[[T], Any]) -> None:
    def ended(task: asyncio.Future[T]) -> None:
        if not task.cancelled() and task.exception() is None:
            drop(task.result())

    task.cancel()
    task.add_done_callback(ended)

"""Event loops in threads, for blocking code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from ._errors import closed

__all__ = ["Thread", "in_loop", "waits"]

P = ParamSpec("P")
T = TypeVar("T")


class _Owned(Protocol):
    """An object of an event loop: of this thread's, or of that of ``_thread``."""

    _thread: Any


S = TypeVar("S", bound=_Owned)


def in_loop(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """A method that is called in the thread of the event loop, whichever thread calls it."""

    @functools.wraps(method)
    def call(self: S, *arguments: P.args, **named: P.kwargs) -> T:
        if self._thread is None:
            return method(self, *arguments, **named)
        result: T = self._thread.run(method, self, *arguments, **named)
        return result

    return cast(Callable[Concatenate[S, P], T], call)


def waits(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], T]:
    """The same method for other threads, which waits where that one is awaited."""

    @functools.wraps(method)
    def call(self: Any, *arguments: P.args, **named: P.kwargs) -> T:
        result: T = self._thread.call(method(self, *arguments, **named))
        return result

    return cast(Callable[Concatenate[Any, P], T], call)


class Thread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        # What is handed over before the loop is to stop is done. A signal handler may come between.
        self._lock = threading.RLock()
        self._is_stopping = False
        #: The client that is in it.
        self.client: Any = None
        # A daemon: a program that ends without closing its clients ends at once.
        self._thread = threading.Thread(target=self._run, name="playfield", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing is done any more."""
        return self._is_stopping or not self._thread.is_alive()

    def call(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine in the thread, and waits for its result."""
        why: Exception | None = None
        if self._process != os.getpid():
            why = RuntimeError("this process was forked from the client's: connect again here")
        elif threading.current_thread() is self._thread:
            why = RuntimeError("a function that the client calls can't wait for the client")
        else:
            with self._lock:
                if self.is_stopped:
                    why = self._closed()
                else:
                    future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        if why is not None:
            coroutine.close()
            raise why
        try:
            return future.result(timeout)
        except concurrent.futures.TimeoutError:
            # Or the coroutine has raised it, or has ended just now.
            if not future.cancel() and not future.cancelled():
                return future.result()
            raise TimeoutError(f"it took longer than {timeout} s") from None
        except concurrent.futures.CancelledError:
            raise self._closed() from None
        except BaseException:
            future.cancel()
            raise

    def _closed(self) -> Exception:
        ended = self.client and self.client.ended
        return ended.with_traceback(None) if ended else closed()

    def run(self, function: Callable[..., T], /, *arguments: Any, **named: Any) -> T:
        """Calls a function in the thread: what is there belongs to it."""
        if threading.current_thread() is self._thread:
            return function(*arguments, **named)

        async def call() -> T:
            return function(*arguments, **named)

        return self.call(call())

    def stop(self) -> None:
        if self._process != os.getpid() or threading.current_thread() is self._thread:
            return
        with self._lock:
            is_first, self._is_stopping = not self.is_stopped, True
            if is_first:
                asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        self._thread.join()
        if is_first:
            self._loop.close()

    async def _finish(self) -> None:
        """Ends what other threads wait for."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._loop.call_soon(self._loop.stop)

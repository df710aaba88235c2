"""The tokens that a program gives for the node's authenticator."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Union

#: What a program gives for the node's authenticator.
Token = Union[str, bytes, Callable[[], Union[str, bytes, Awaitable[Union[str, bytes]]]]]


def token_bytes(token: Any) -> bytes:
    """A token as it is sent."""
    if isinstance(token, str):
        return token.encode()
    if isinstance(token, (bytes, bytearray, memoryview)):
        return bytes(token)
    raise TypeError(f"a token is a str or bytes, or a function that returns one, not {token!r}")


async def given_token(give: Callable[[], Any], limit: float) -> bytes:
    """The token that a function of the program gives, within ``limit`` seconds."""
    task = asyncio.ensure_future(_given(give))
    try:
        # Not `wait_for`: it would wait for a function that takes its cancellation as no reason to end.
        await asyncio.wait({task}, timeout=None if limit == float("inf") else limit)
        if not task.done():
            raise TimeoutError(f"there was no token in {limit:g} s")
        if task.cancelled():
            raise RuntimeError("the function for the token was canceled")
        return token_bytes(task.result())
    finally:
        task.cancel()


async def _given(give: Callable[[], Any]) -> Any:
    call = getattr(type(give), "__call__", None)
    if inspect.iscoroutinefunction(give) or inspect.iscoroutinefunction(call):
        token = await give()
    else:
        # It may take its time, so it is called in a thread.
        token = await _in_thread(give)
    return await token if inspect.isawaitable(token) else token


def _in_thread(function: Callable[[], Any]) -> Awaitable[Any]:
    """Calls a function in a thread that the program does not wait for at its end."""
    loop = asyncio.get_running_loop()
    result = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if result.done():
            return
        if error is None:
            result.set_result(value)
        elif isinstance(error, Exception) and not isinstance(error, StopIteration):
            result.set_exception(error)
        else:
            # As `SystemExit`, which is meant for a thread, not for the event loop.
            wrapped = RuntimeError(f"the function for the token raised {error!r}")
            wrapped.__cause__ = error
            result.set_exception(wrapped)

    def run() -> None:
        value, error = None, None
        try:
            value = context.run(function)
        except BaseException as raised:
            error = raised
        # The loop may be closed by now.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name="playfield-token", daemon=True).start()
    return result

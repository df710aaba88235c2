"""The functions that a program gives to be called."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any


def plain_function(function: Any, what: str) -> Callable[..., Any]:
    """The function, unless it can't be called or would have to be awaited."""
    if not callable(function):
        raise TypeError(f"{what} takes a function, not {function!r}")
    call = getattr(type(function), "__call__", None)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call):
        raise TypeError(f"{what} is called, not awaited: give it a plain function")
    checked: Callable[..., Any] = function
    return checked


def plain_result(result: Any, what: str) -> Any:
    """What a function has returned, unless it would have to be awaited."""
    if isinstance(result, types.CoroutineType):
        result.close()
        raise TypeError(f"{what} has returned a coroutine: it is called, not awaited")
    return result


def without(functions: list[Any], function: Callable[..., Any]) -> list[Any]:
    """Another list, without the function: the present one may be in use by a loop."""
    return [known for known in functions if known != function]

"""One message to many connections."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

from . import _common
from ._async import ClientConnection
from .exceptions import ConcurrencyError
from .protocol import State

__all__ = ["broadcast"]


def broadcast(
    connections: Iterable[ClientConnection],
    message: str | bytes | bytearray | memoryview,
    *,
    text: bool | None = None,
    raise_exceptions: bool = False,
) -> None:
    """Send a message to several asynchronous connections, without waiting for any.

    It skips connections that are not open, and those on which a message is sent in fragments; their
    ``logger`` says so. With ``raise_exceptions``, an ``ExceptionGroup`` (the first of its
    exceptions before Python 3.11) has what went wrong, once all others are served. A server that does not read is not waited for, so
    what it is sent piles up until its ping is unanswered.

    Raises ``TypeError`` if ``message`` is neither text nor bytes.
    """
    if not isinstance(message, (str, bytes, bytearray, memoryview)):
        raise TypeError("data must be str or bytes")
    failed: list[Exception] = []
    for connection in connections:
        if connection.state is not State.OPEN:
            continue
        if connection._fragments is not None:
            failed.append(ConcurrencyError("sending a fragmented message"))
        else:
            try:
                connection.send(message, text)
            except Exception as error:
                wrong: Exception = RuntimeError("failed to write message")
                wrong.__cause__ = error
                failed.append(wrong)
            else:
                continue
        if not raise_exceptions:
            logger: Any = connection.logger or _common.LOGGER
            logger.warning("skipped broadcast: %s", failed.pop())
    if failed:
        group = getattr(builtins, "ExceptionGroup", None)
        raise failed[0] if group is None else group("skipped broadcast", failed)

"""Connecting again and again, for blocking code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _common
from ._async import backoff, process_exception
from ._sync import ClientConnection, Connector, connect
from .typing import PathLike

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .typing import ConnectOptions

__all__ = ["reconnect", "unix_reconnect"]


class reconnect(Connector):
    """Connect to the server at ``uri`` again and again: ``for connection in reconnect(uri)``.

    An attempt that fails for a reason that may pass is repeated after a growing delay; another
    raises. Each connection is closed at the end of its turn. ``with reconnect(uri) as connection``
    connects once. Arguments are those of :func:`connect`, and ``process_exception`` and
    ``reconnect_delays``, as :func:`playfield.websocket.connect` has them.
    """

    process_exception: Callable[[Exception], Exception | None] = staticmethod(process_exception)
    reconnect_delays: Callable[[], Iterator[float]] = staticmethod(backoff)

    def __init__(
        self,
        uri: str,
        *,
        process_exception: Callable[[Exception], Exception | None] = process_exception,
        reconnect_delays: Callable[[], Iterator[float]] = backoff,
        **options: Unpack[ConnectOptions],
    ) -> None:
        connect(uri, _connector=self, **options)  # type: ignore[call-overload]
        self.process_exception = process_exception
        self.reconnect_delays = reconnect_delays

    def __iter__(self) -> Iterator[ClientConnection]:
        delays: Iterator[float] | None = None
        while True:
            try:
                connection = self.connect()
            except Exception as error:
                fatal = self.process_exception(error)
                if fatal is error:
                    raise
                if fatal is not None:
                    raise fatal from error
                delays = delays or self.reconnect_delays()
                time.sleep(next(delays))
                continue
            delays = None
            with connection:
                yield connection

    def __enter__(self) -> ClientConnection:
        self.connection = self.connect()
        return self.connection.__enter__()

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.connection.__exit__(kind, value, traceback)


def unix_reconnect(path: PathLike | None = None, uri: str | None = None, **options: Any) -> reconnect:
    """Connect again and again to a server that listens on a Unix socket."""
    _common.check_unix(path, options.get("sock"))
    scheme = "wss" if options.get("ssl") else "ws"
    return reconnect(uri or f"{scheme}://localhost/", unix=path, **options)

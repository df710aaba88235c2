"""Connecting again and again, for blocking code."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from . import _common
from ._async import backoff, process_exception
from ._sync import ClientConnection, connect

__all__ = ["reconnect", "unix_reconnect"]


class reconnect:
    """Connect to the server at ``uri`` again and again: ``for connection in reconnect(uri)``.

    An attempt that fails for a reason that may pass is repeated after a growing delay; another
    raises. Each connection is closed at the end of its turn. ``with reconnect(uri) as connection``
    connects once. Arguments are those of :func:`connect`, and ``process_exception`` and
    ``reconnect_delays``, as :func:`playfield.websocket.connect` has them.
    """

    def __init__(
        self,
        uri: str,
        *,
        process_exception: Any = process_exception,
        reconnect_delays: Any = backoff,
        **options: Any,
    ) -> None:
        self.uri = uri
        self.options = options
        self.process_exception = process_exception
        self.reconnect_delays = reconnect_delays

    def __iter__(self) -> Iterator[ClientConnection]:
        delays = None
        while True:
            try:
                connection = connect(self.uri, **self.options)
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
        self.connection = connect(self.uri, **self.options)
        return self.connection.__enter__()

    def __exit__(self, kind, value, traceback) -> None:
        self.connection.__exit__(kind, value, traceback)


def unix_reconnect(path: str | None = None, uri: str | None = None, **options: Any) -> reconnect:
    """Connect again and again to a server that listens on a Unix socket."""
    _common.check_unix(path, options.get("sock"))
    scheme = "wss" if options.get("ssl") else "ws"
    return reconnect(uri or f"{scheme}://localhost/", unix=path, **options)

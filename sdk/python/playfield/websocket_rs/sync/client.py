"""``websocket_rs.sync.client``'s names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...websocket import _sync
from ...websocket.exceptions import ConnectionClosed
from .. import _flavor

__all__ = ["ClientConnection", "connect"]


class _Connection(_flavor.Flavored, _sync.ClientConnection):
    def ping(self, data: bytes | None = None) -> None:
        self._send_control(True, _flavor.control_payload(data), True)

    def pong(self, data: bytes | None = None) -> None:
        self._send_control(False, _flavor.control_payload(data), True)


class ClientConnection(_flavor.Dialed):
    """A connection to a server. ``with ClientConnection(url) as connection`` opens and closes it;
    :func:`connect` opens it at once.

    Timeouts are in seconds, 10 by default. ``send``, ``recv``, ``ping`` and ``pong`` raise
    ``RuntimeError`` unless the connection is open, and ``recv`` raises ``TimeoutError`` after
    ``receive_timeout``.
    """

    def __init__(
        self,
        url: str,
        connect_timeout: float | None = None,
        receive_timeout: float | None = None,
        close_timeout: float | None = None,
        tcp_nodelay: bool | None = None,
        subprotocols: list[str] | None = None,
    ) -> None:
        def or_default(timeout: float | None) -> float:
            return _flavor.TIMEOUT if timeout is None else timeout

        self._url = url
        self._options = {
            **_flavor.DEFAULTS,
            "open_timeout": or_default(connect_timeout),
            "receive_timeout": or_default(receive_timeout),
            "close_timeout": or_default(close_timeout),
            "tcp_nodelay": tcp_nodelay is not False,
            "subprotocols": subprotocols,
        }

    def _dial(self) -> None:
        with _flavor.opening():
            self._bind(_sync.connect(self._url, create_connection=_Connection, **self._options))

    def close(self) -> None:
        """Close the connection: send a Close frame, and wait for the server's."""
        if self._connection is not None:
            self._connection.close()

    def __enter__(self) -> ClientConnection:
        if not self.open:
            self._dial()
        return self

    def __exit__(self, kind: Any = None, value: Any = None, traceback: Any = None) -> bool:
        self.close()
        return False

    def __iter__(self) -> Iterator[str | bytes]:
        return self

    def __next__(self) -> str | bytes:
        try:
            return self.recv()
        except ConnectionClosed:
            raise StopIteration from None


def connect(
    uri: str,
    connect_timeout: float | None = None,
    receive_timeout: float | None = None,
    close_timeout: float | None = None,
    tcp_nodelay: bool | None = None,
    subprotocols: list[str] | None = None,
) -> ClientConnection:
    """Connect to a server. The connection is a context manager that closes it.

    Raises ``ConnectionError`` where the server is not reached or refuses, and ``TimeoutError``.
    """
    connection = ClientConnection(
        uri, connect_timeout, receive_timeout, close_timeout, tcp_nodelay, subprotocols
    )
    connection._dial()
    return connection

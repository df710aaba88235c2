"""``websocket_rs.async_client``'s names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..websocket import _async
from ..websocket.exceptions import ConnectionClosed
from . import _flavor

__all__ = ["ClientConnection", "connect"]


class _Connection(_flavor.Flavored, _async.ClientConnection):
    async def ping(self, data: bytes | None = None) -> None:
        await self._send_control(True, _flavor.control_payload(data))

    async def pong(self, data: bytes | None = None) -> None:
        await self._send_control(False, _flavor.control_payload(data))


class ClientConnection(_flavor.Dialed):
    """A connection to a server. ``async with ClientConnection(url) as connection`` opens and closes
    it; :func:`connect` opens it at once.

    Timeouts are in seconds, 10 by default. Received text is ``str``, and binary is ``bytes``.
    ``send``, ``recv``, ``ping`` and ``pong`` raise ``RuntimeError`` unless the connection is open,
    and ``recv`` raises ``TimeoutError`` after ``receive_timeout``.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
        proxy: str | None = None,
        connect_timeout: float | None = None,
        receive_timeout: float | None = None,
        tcp_nodelay: bool | None = None,
    ) -> None:
        self._url = url
        self._options = {
            **_flavor.DEFAULTS,
            "open_timeout": _flavor.TIMEOUT if connect_timeout is None else connect_timeout,
            "receive_timeout": _flavor.TIMEOUT if receive_timeout is None else receive_timeout,
            "additional_headers": _flavor.own_headers(headers),
            "proxy": proxy,
            "tcp_nodelay": tcp_nodelay is not False,
        }

    async def _dial(self) -> None:
        with _flavor.opening():
            self._bind(
                await _async.connect(self._url, create_connection=_Connection, **self._options)
            )

    async def close(self) -> None:
        """Close the connection: send a Close frame, and wait for the server's."""
        if self._connection is not None:
            await self._connection.close()

    async def __aenter__(self) -> ClientConnection:
        if not self.open:
            await self._dial()
        return self

    async def __aexit__(self, kind: Any = None, value: Any = None, traceback: Any = None) -> bool:
        await self.close()
        return False

    def __aiter__(self) -> ClientConnection:
        return self

    async def __anext__(self) -> str | bytes:
        try:
            return await self.recv()
        except ConnectionClosed:
            raise StopAsyncIteration from None


async def connect(
    uri: str,
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    proxy: str | None = None,
    connect_timeout: float | None = None,
    receive_timeout: float | None = None,
    **ignored: Any,
) -> ClientConnection:
    """Connect to a server. Other arguments are ignored, as ``websocket_rs`` does.

    Raises ``ConnectionError`` where the server is not reached or refuses, and ``TimeoutError``.
    """
    connection = ClientConnection(
        uri,
        headers=headers,
        proxy=proxy,
        connect_timeout=connect_timeout,
        receive_timeout=receive_timeout,
    )
    await connection._dial()
    return connection

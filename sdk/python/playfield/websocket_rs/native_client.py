"""``websocket_rs.native_client``'s names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any

from .._callbacks import plain_function
from ..websocket import _async
from ..websocket.exceptions import ConnectionClosed
from . import _flavor

__all__ = ["NativeClient", "NativeClientBuffered", "WSMessage", "connect"]

#: A received message is ``bytes``, also if it was text: they have all that a ``WSMessage`` of
#: ``websocket_rs`` has.
WSMessage = bytes


class NativeClient(_flavor.Flavored, _async.ClientConnection):
    """A connection to a server, made by :func:`connect`.

    ``send``, ``ping``, ``pong`` and ``close`` act at once, and may be awaited.
    """

    @property
    def is_open(self) -> bool:
        """Whether messages may be sent."""
        return self.open

    def recv(self, decode: bool | None = False) -> Any:
        """Await the next message, as ``bytes``: text too, in UTF-8. With ``decode=None``, text is
        ``str``.

        Raises ``TimeoutError`` after ``receive_timeout`` seconds, and ``ConnectionError`` once the
        connection is closed.
        """
        return super().recv(decode)

    def _recv_in_time(self, decode: bool | None = False) -> Any:
        return super()._recv_in_time(decode)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        take = self._take
        try:
            while True:
                message = take()
                if message is None:
                    message = await self.recv()
                yield message if isinstance(message, bytes) else message.encode()
        except ConnectionClosed:
            return

    async def __anext__(self) -> bytes:
        try:
            return await self.recv()
        except ConnectionClosed:
            raise StopAsyncIteration("the connection is closed") from None

    def ping(self, data: bytes | None = None) -> Any:
        """Send a ping with a payload of at most 125 bytes."""
        return self._send_control(True, _flavor.control_payload(data))

    def pong(self, data: bytes | None = None) -> Any:
        """Send a pong with a payload of at most 125 bytes."""
        return self._send_control(False, _flavor.control_payload(data))

    def close(self, code: int = 1000, reason: str = "") -> Any:
        """Send a Close frame. The connection ends once the server has answered, or after 10
        seconds; await it to wait for that."""
        if self._told:
            self._abort()
        elif not self._is_lost:
            self._send_close(code, reason)
            self._closing()
        return _Closed(self)


class _Closed:
    """Awaits the end of a connection."""

    def __init__(self, connection: NativeClient) -> None:
        self._connection = connection

    def __await__(self) -> Any:
        return self._connection.wait_closed().__await__()


#: A name of ``websocket_rs`` for connections without TLS.
NativeClientBuffered = NativeClient


async def connect(
    uri: str,
    *,
    headers: Iterable[tuple[str, str]] | Mapping[str, str] | None = None,
    subprotocols: list[str] | None = None,
    ssl_context: Any = None,
    connect_timeout: float | None = None,
    receive_timeout: float | None = None,
    proxy: str | None = None,
    compression: bool = False,
    on_message: Callable[[bytes], None] | None = None,
    **options: Any,
) -> NativeClient:
    """Connect to a server.

    ``connect_timeout`` is 10 seconds by default; without a ``receive_timeout``, a receive takes as
    long as the connection is open. ``compression`` offers permessage-deflate. ``on_message`` is
    called with each message, as ``bytes``. ``options`` are further arguments of
    :func:`playfield.websocket.connect`.

    Raises ``ValueError`` for a URI or a proxy that is none, ``ConnectionError`` where the server is
    not reached or refuses, and ``TimeoutError``.
    """
    options = {
        **_flavor.DEFAULTS,
        "open_timeout": _flavor.TIMEOUT if connect_timeout is None else connect_timeout,
        "receive_timeout": receive_timeout,
        "additional_headers": _flavor.own_headers(headers),
        "subprotocols": subprotocols,
        "ssl": ssl_context if uri.startswith("wss:") else None,
        "compression": "deflate" if compression else None,
        "proxy": proxy,
        "on_message": None if on_message is None else _with_bytes(on_message),
        "create_connection": NativeClient,
        **options,
    }
    with _flavor.opening(ValueError):
        return await _async.connect(uri, **options)


def _with_bytes(on_message: Callable[[bytes], None]) -> Callable[[Any], None]:
    """A function that is called with text and bytes, and calls another with bytes."""
    plain_function(on_message, "on_message")
    return lambda message: on_message(message if isinstance(message, bytes) else message.encode())

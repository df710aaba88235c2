"""``websockets.typing``'s names: the types of arguments."""

from __future__ import annotations

import http
import logging
import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NewType, Optional, TypedDict, Union

if TYPE_CHECKING:
    import ssl as _ssl

    from ._sync import ClientConnection
    from .datastructures import HeadersLike

__all__ = [
    "Data",
    "ExtensionName",
    "ExtensionParameter",
    "LoggerLike",
    "Origin",
    "StatusLike",
    "Subprotocol",
]

#: A message: ``str`` is text, ``bytes`` are binary.
Data = Union[str, bytes]
BytesLike = Union[bytes, bytearray, memoryview]
DataLike = Union[str, bytes, bytearray, memoryview]
LoggerLike = Union[logging.Logger, "logging.LoggerAdapter[Any]"]
PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
#: A limit, or one of messages and one of fragments, or high- and low-water marks; ``None`` for none.
Limit = Union[int, tuple[Optional[int], Optional[int]], None]
StatusLike = Union[http.HTTPStatus, int]
#: The value of a header ``Origin``.
Origin = NewType("Origin", str)
#: A subprotocol in ``Sec-WebSocket-Protocol``.
Subprotocol = NewType("Subprotocol", str)
ExtensionName = NewType("ExtensionName", str)
ExtensionParameter = tuple[str, Optional[str]]


class ConnectOptions(TypedDict, total=False):
    """The arguments of :func:`playfield.websocket.sync.connect`, but ``uri`` and ``legacy``."""

    origin: str | None
    subprotocols: Sequence[str] | None
    compression: Literal["deflate"] | None
    extensions: Sequence[Any] | None
    additional_headers: HeadersLike | None
    headers: HeadersLike | None
    user_agent_header: str | None
    proxy: str | bool | None
    open_timeout: float | None
    connect_timeout: float | None
    receive_timeout: float | None
    ping_interval: float | None
    ping_timeout: float | None
    close_timeout: float | None
    max_size: Limit
    max_queue: Limit
    ssl: _ssl.SSLContext | Literal[True] | None
    ssl_context: _ssl.SSLContext | None
    server_hostname: str | None
    proxy_ssl: _ssl.SSLContext | Literal[True] | None
    proxy_server_hostname: str | None
    sock: socket.socket | None
    unix: PathLike | Literal[True] | None
    path: PathLike | None
    address: tuple[str, int] | None
    host: str | None
    port: int | None
    family: int
    happy_eyeballs_delay: float | None
    source_address: tuple[str, int] | None
    tcp_nodelay: bool
    spin_us: int
    create_connection: type[ClientConnection] | None
    logger: LoggerLike | None

"""A WebSocket client for asyncio and uvloop, with the API of ``websockets``.

::

    from playfield.websocket import connect

    async with connect("ws://localhost:8765") as connection:
        await connection.send("hello")
        print(await connection.recv())

``playfield.websocket.sync`` is the same for blocking code.
"""

from ._async import ClientConnection, connect, process_exception, unix_connect
from ._common import Headers, Request, Response, State
from .exceptions import (
    Close,
    ConcurrencyError,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    InvalidHandshake,
    InvalidMessage,
    InvalidProxy,
    InvalidProxyStatus,
    InvalidStatus,
    InvalidURI,
    PayloadTooBig,
    ProtocolError,
    ProxyError,
    SecurityError,
    WebSocketException,
)

__all__ = [
    "ClientConnection",
    "Close",
    "ConcurrencyError",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "Headers",
    "InvalidHandshake",
    "InvalidMessage",
    "InvalidProxy",
    "InvalidProxyStatus",
    "InvalidStatus",
    "InvalidURI",
    "PayloadTooBig",
    "ProtocolError",
    "ProxyError",
    "Request",
    "Response",
    "SecurityError",
    "State",
    "WebSocketException",
    "connect",
    "process_exception",
    "unix_connect",
]

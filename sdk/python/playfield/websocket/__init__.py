"""A WebSocket client for asyncio and uvloop, with the API of ``websockets``.

::

    from playfield.websocket import connect

    async with connect("ws://localhost:8765") as connection:
        await connection.send("hello")
        print(await connection.recv())

``playfield.websocket.sync`` is the same for blocking code.
"""

import warnings

from . import exceptions, frames, protocol, typing, uri
from ._alternatives import missing
from ._async import ClientConnection, connect, process_exception, unix_connect
from ._broadcast import broadcast
from ._common import Request, Response
from .datastructures import Headers, HeadersLike, MultipleValuesError
from .exceptions import (
    ConcurrencyError,
    ConnectionClosed,
    ConnectionClosedError,
    ConnectionClosedOK,
    DuplicateParameter,
    HeaderLineTooLong,
    InvalidHandshake,
    InvalidHeader,
    InvalidHeaderFormat,
    InvalidHeaderValue,
    InvalidMessage,
    InvalidMethod,
    InvalidOrigin,
    InvalidParameterName,
    InvalidParameterValue,
    InvalidProtocol,
    InvalidProxy,
    InvalidProxyMessage,
    InvalidProxyStatus,
    InvalidState,
    InvalidStatus,
    InvalidURI,
    InvalidUpgrade,
    NegotiationError,
    PayloadTooBig,
    ProtocolError,
    ProxyError,
    RequestLineTooLong,
    SecurityError,
    StatusLineTooLong,
    TooManyFragments,
    TooManyHeaders,
    WebSocketException,
)
from .frames import Close, CloseCode, Opcode
from .protocol import Side, State
from .typing import (
    Data,
    ExtensionName,
    ExtensionParameter,
    LoggerLike,
    Origin,
    StatusLike,
    Subprotocol,
)
from .version import version as __version__

__all__ = [
    "ClientConnection",
    "Close",
    "CloseCode",
    "ConcurrencyError",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "Data",
    "DuplicateParameter",
    "ExtensionName",
    "ExtensionParameter",
    "HeaderLineTooLong",
    "Headers",
    "HeadersLike",
    "InvalidHandshake",
    "InvalidHeader",
    "InvalidHeaderFormat",
    "InvalidHeaderValue",
    "InvalidMessage",
    "InvalidMethod",
    "InvalidOrigin",
    "InvalidParameterName",
    "InvalidParameterValue",
    "InvalidProtocol",
    "InvalidProxy",
    "InvalidProxyMessage",
    "InvalidProxyStatus",
    "InvalidState",
    "InvalidStatus",
    "InvalidURI",
    "InvalidUpgrade",
    "LoggerLike",
    "MultipleValuesError",
    "NegotiationError",
    "Opcode",
    "Origin",
    "PayloadTooBig",
    "ProtocolError",
    "ProxyError",
    "Request",
    "RequestLineTooLong",
    "Response",
    "SecurityError",
    "Side",
    "State",
    "StatusLike",
    "StatusLineTooLong",
    "Subprotocol",
    "TooManyFragments",
    "TooManyHeaders",
    "WebSocketException",
    "__version__",
    "broadcast",
    "connect",
    "process_exception",
    "unix_connect",
]

_find = missing(
    __name__,
    {
        "legacy": "use connect, whose extra_headers are additional_headers",
        "server": "there is no server in this package: import it from websockets",
    },
)


def __getattr__(name: str) -> object:
    if name == "WebSocketClientProtocol":
        warnings.warn(
            "WebSocketClientProtocol is ClientConnection", DeprecationWarning, stacklevel=2
        )
        return ClientConnection
    return _find(name)

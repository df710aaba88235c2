"""Exceptions. Where ``websockets`` is installed, each is a subclass of its namesake there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _exceptions

if TYPE_CHECKING:
    # Type checkers need not have `websockets`.
    from . import _exceptions as _base
    from ._exceptions import Close
else:
    try:
        from websockets import exceptions as _base
        from websockets.frames import Close
    except ImportError:
        _base = _exceptions
        from ._exceptions import Close

__all__ = [
    "Close",
    "ConcurrencyError",
    "ConnectionClosed",
    "ConnectionClosedError",
    "ConnectionClosedOK",
    "DuplicateParameter",
    "HeaderLineTooLong",
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
    "NegotiationError",
    "PayloadTooBig",
    "ProtocolError",
    "ProxyError",
    "RequestLineTooLong",
    "SecurityError",
    "StatusLineTooLong",
    "TooManyFragments",
    "TooManyHeaders",
    "WebSocketException",
]


if TYPE_CHECKING:
    from ._exceptions import (
        ConnectionClosed as ConnectionClosed,
        DuplicateParameter as DuplicateParameter,
        HeaderLineTooLong as HeaderLineTooLong,
        InvalidHandshake as InvalidHandshake,
        InvalidHeader as InvalidHeader,
        InvalidHeaderFormat as InvalidHeaderFormat,
        InvalidHeaderValue as InvalidHeaderValue,
        InvalidMethod as InvalidMethod,
        InvalidOrigin as InvalidOrigin,
        InvalidParameterName as InvalidParameterName,
        InvalidParameterValue as InvalidParameterValue,
        InvalidProtocol as InvalidProtocol,
        InvalidProxyMessage as InvalidProxyMessage,
        InvalidState as InvalidState,
        InvalidUpgrade as InvalidUpgrade,
        NegotiationError as NegotiationError,
        ProxyError as ProxyError,
        RequestLineTooLong as RequestLineTooLong,
        StatusLineTooLong as StatusLineTooLong,
        TooManyFragments as TooManyFragments,
        TooManyHeaders as TooManyHeaders,
        WebSocketException as WebSocketException,
    )
else:

    def _namesake(name: str) -> type:
        """The exception of ``websockets``; one of this package's if that has none, or is not there."""
        return getattr(_base, name, None) or getattr(_exceptions, name)

    WebSocketException = _namesake("WebSocketException")
    ConnectionClosed = _namesake("ConnectionClosed")
    InvalidHandshake = _namesake("InvalidHandshake")
    ProxyError = _namesake("ProxyError")
    InvalidProxyMessage = _namesake("InvalidProxyMessage")
    InvalidHeader = _namesake("InvalidHeader")
    InvalidHeaderFormat = _namesake("InvalidHeaderFormat")
    InvalidHeaderValue = _namesake("InvalidHeaderValue")
    InvalidUpgrade = _namesake("InvalidUpgrade")
    NegotiationError = _namesake("NegotiationError")
    DuplicateParameter = _namesake("DuplicateParameter")
    InvalidParameterName = _namesake("InvalidParameterName")
    InvalidParameterValue = _namesake("InvalidParameterValue")
    # A client of this package does not raise these.
    InvalidMethod = _namesake("InvalidMethod")
    InvalidOrigin = _namesake("InvalidOrigin")
    InvalidProtocol = _namesake("InvalidProtocol")
    InvalidState = _namesake("InvalidState")
    RequestLineTooLong = _namesake("RequestLineTooLong")
    StatusLineTooLong = _namesake("StatusLineTooLong")
    HeaderLineTooLong = _namesake("HeaderLineTooLong")
    TooManyHeaders = _namesake("TooManyHeaders")
    TooManyFragments = _namesake("TooManyFragments")


class ConnectionClosedOK(_base.ConnectionClosedOK):
    """The connection was closed by both ends, with code 1000, 1001 or none.

    ``rcvd`` and ``sent`` are the Close frames, with ``code`` and ``reason``;
    ``rcvd_then_sent`` says which came first.
    """


class ConnectionClosedError(_base.ConnectionClosedError):
    """The connection was lost, or closed with a code that reports an error.

    ``rcvd`` and ``sent`` are the Close frames or ``None``. If the server has sent something
    invalid, ``__cause__`` is a ``ProtocolError`` or ``PayloadTooBig`` that says what.
    """


class ConcurrencyError(_base.ConcurrencyError):
    """Two tasks or threads receive from one connection, or a ping repeats one in flight."""


class InvalidURI(_base.InvalidURI):
    """The URI has no scheme ``ws`` or ``wss``, no host, or a fragment."""


class InvalidProxy(_base.InvalidProxy):
    """The proxy's URI is invalid, or its scheme is not supported."""


class InvalidProxyStatus(_base.InvalidProxyStatus):
    """The proxy refused to connect. ``response`` has its status."""


class InvalidMessage(_base.InvalidMessage):
    """The server's response to the opening handshake is invalid, or did not come."""


class InvalidStatus(_base.InvalidStatus):
    """The server answered the opening handshake with a status other than 101.

    ``response`` has ``status_code``, ``reason_phrase``, ``headers`` and the start of ``body``.
    """


class SecurityError(_base.SecurityError):
    """A redirect leads from TLS to plaintext."""


class ProtocolError(_base.ProtocolError):
    """The server has broken the protocol, or a close code may not be sent."""


class PayloadTooBig(_base.PayloadTooBig):
    """A message was longer than ``max_size``."""

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)
        self.message = message

    def __str__(self) -> str:
        return self.message


# Both codes of a normal close; 1005 is a Close frame without a code.
_OK_CODES = (1000, 1001, 1005)


def closed(ending: Any, error: Any = None) -> ConnectionClosed:
    """The exception for how a connection has ended."""
    received, sent, received_first, invalid, _ = ending
    received = received and Close(*received)
    sent = sent and Close(*sent)
    both = received is not None and sent is not None
    is_ok = both and received.code in _OK_CODES and sent.code in _OK_CODES
    kind = ConnectionClosedOK if is_ok else ConnectionClosedError
    exception = kind(received, sent, received_first if both else None)
    if invalid is not None:
        code, text = invalid
        exception.__cause__ = PayloadTooBig(text) if code == 1009 else ProtocolError(text)
    elif error is not None:
        exception.__cause__ = error if isinstance(error, Exception) else OSError(error)
    return exception

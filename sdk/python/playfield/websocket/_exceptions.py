"""What the exceptions are subclasses of where ``websockets`` is not installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._common import Response


@dataclass
class Close:
    """The code and the reason of a Close frame."""

    code: int
    reason: str

    def __str__(self) -> str:
        return f"{self.code} {self.reason}".rstrip()


class WebSocketException(Exception):
    """Whatever goes wrong with a WebSocket."""


class ConnectionClosed(WebSocketException):
    """The connection is closed."""

    def __init__(
        self, rcvd: Close | None, sent: Close | None, rcvd_then_sent: bool | None = None
    ) -> None:
        self.rcvd = rcvd
        self.sent = sent
        self.rcvd_then_sent = rcvd_then_sent

    def __str__(self) -> str:
        if self.rcvd is None and self.sent is None:
            return "no close frame received or sent"
        received = f"received {self.rcvd}" if self.rcvd else "no close frame received"
        sent = f"sent {self.sent}" if self.sent else "no close frame sent"
        return f"{received}; {sent}"

    @property
    def code(self) -> int:
        """The code of the received Close frame; 1006 without one."""
        return 1006 if self.rcvd is None else self.rcvd.code

    @property
    def reason(self) -> str:
        """The reason in the received Close frame."""
        return "" if self.rcvd is None else self.rcvd.reason


class ConnectionClosedOK(ConnectionClosed):
    pass


class ConnectionClosedError(ConnectionClosed):
    pass


class _About(WebSocketException):
    def __init__(self, subject: str, msg: str) -> None:
        super().__init__(f"{subject}: {msg}")


class InvalidURI(_About):
    pass


class InvalidProxy(_About):
    pass


class InvalidHandshake(WebSocketException):
    """The opening handshake failed."""


class SecurityError(InvalidHandshake):
    pass


class ProxyError(InvalidHandshake):
    """The proxy did not connect."""


class _Status(InvalidHandshake):
    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP status {response.status_code}")
        self.response = response


class InvalidProxyStatus(_Status, ProxyError):
    pass


class InvalidMessage(InvalidHandshake):
    pass


class InvalidStatus(_Status):
    pass


class ProtocolError(WebSocketException):
    pass


class PayloadTooBig(WebSocketException):
    pass


class ConcurrencyError(WebSocketException, RuntimeError):
    pass


class InvalidProxyMessage(ProxyError):
    pass


class RequestLineTooLong(SecurityError):
    pass


class StatusLineTooLong(SecurityError):
    pass


class HeaderLineTooLong(SecurityError):
    pass


class TooManyHeaders(SecurityError):
    pass


class InvalidMethod(InvalidHandshake):
    pass


class InvalidProtocol(InvalidHandshake):
    pass


class InvalidHeader(InvalidHandshake):
    """A header of the handshake is missing or wrong."""

    def __init__(self, name: str, value: str | None = None) -> None:
        super().__init__(name, value)
        self.name = name
        self.value = value

    def __str__(self) -> str:
        if not self.value:
            return f"{'missing' if self.value is None else 'empty'} {self.name} header"
        return f"invalid {self.name} header: {self.value}"


class InvalidHeaderFormat(InvalidHeader):
    def __init__(self, name: str, error: str, header: str, pos: int) -> None:
        super().__init__(name, f"{error} at {pos} in {header}")


class InvalidHeaderValue(InvalidHeader):
    pass


class InvalidOrigin(InvalidHeader):
    def __init__(self, origin: str | None) -> None:
        super().__init__("Origin", origin)


class InvalidUpgrade(InvalidHeader):
    pass


class NegotiationError(InvalidHandshake):
    """The server selected what was not offered."""


class _Parameter(NegotiationError):
    def __init__(self, name: str, value: str | None = None) -> None:
        super().__init__(name, value)
        self.name = name
        self.value = value


class DuplicateParameter(_Parameter):
    pass


class InvalidParameterName(_Parameter):
    pass


class InvalidParameterValue(_Parameter):
    pass


class TooManyFragments(WebSocketException):
    pass


class InvalidState(WebSocketException, AssertionError):
    pass

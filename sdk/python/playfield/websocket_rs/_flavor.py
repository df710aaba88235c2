"""What the clients of ``websocket_rs`` share: its defaults, and the exceptions of its programs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ..websocket import exceptions

#: How long connecting, receiving and closing take, in seconds, where a program does not say.
TIMEOUT = 10.0

#: What all connections are opened with. A message has at most 64 MiB, no ping is sent but the
#: program's own, and nothing is compressed or passes a proxy unless the program says so.
DEFAULTS: dict[str, Any] = {
    "max_size": 64 << 20,
    "ping_interval": None,
    "compression": None,
    "proxy": None,
}

#: What a control frame carries at most, in bytes.
CONTROL_BYTES_MAX = 125


class ConnectionClosedOK(exceptions.ConnectionClosedOK, ConnectionError, RuntimeError):
    """The connection was closed as it should be."""

    def __str__(self) -> str:
        return f"Connection closed: {super().__str__()}"


class ConnectionClosedError(exceptions.ConnectionClosedError, ConnectionError, RuntimeError):
    """The connection was closed with an error, or lost."""

    def __str__(self) -> str:
        return f"Connection closed: {super().__str__()}"


class Flavored:
    """Has a connection do what programs of ``websocket_rs`` expect. Once it is closed, it raises a
    ``RuntimeError`` that is a ``ConnectionError`` too."""

    def _send_slowly(self, message: Any, text: bool | None) -> Any:
        # Whatever has a buffer is a message.
        return self.send(memoryview(message), text)  # type: ignore[attr-defined]

    @property
    def close_code(self) -> int | None:
        """The code that the server closed with, or that it was refused with; 1006 if the connection
        was lost. ``None`` until the connection is closed."""
        code = super().close_code  # type: ignore[misc]
        _, sent, _, wrong, _ = self._ending  # type: ignore[attr-defined]
        return sent[0] if code == 1006 and sent and wrong else code

    def _tell(self, error: Any) -> Exception:
        told = super()._tell(error)  # type: ignore[misc]
        ok = isinstance(told, exceptions.ConnectionClosedOK)
        flavored = (ConnectionClosedOK if ok else ConnectionClosedError)(
            told.rcvd, told.sent, told.rcvd_then_sent
        )
        flavored.__cause__ = told.__cause__
        return flavored

    @property
    def local_address(self) -> Any:
        """The address of this end; ``None`` once the connection is closed."""
        return self._local if self.open else None  # type: ignore[attr-defined]

    @property
    def remote_address(self) -> Any:
        """The address of the server; ``None`` once the connection is closed."""
        return self._remote if self.open else None  # type: ignore[attr-defined]


@contextlib.contextmanager
def opening(invalid: type[Exception] = ConnectionError) -> Iterator[None]:
    """A handshake that fails is a ``ConnectionError``, and a URI that is none is ``invalid``."""
    try:
        yield
    except (exceptions.InvalidURI, exceptions.InvalidProxy) as error:
        raise invalid(str(error)) from error
    except exceptions.InvalidHandshake as error:
        raise ConnectionError(f"the handshake has failed: {error}") from error


#: Headers that the handshake writes itself.
_RESERVED = {
    "connection",
    "host",
    "sec-websocket-key",
    "sec-websocket-protocol",
    "sec-websocket-version",
    "upgrade",
}


def own_headers(headers: Any) -> list[tuple[str, str]]:
    """The headers of a program, but for those that the handshake writes itself."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return [(name, value) for name, value in pairs if name.lower() not in _RESERVED]


def control_payload(data: bytes | None) -> bytes:
    """The payload of a Ping or a Pong."""
    payload = b"" if data is None else bytes(data)
    if len(payload) > CONTROL_BYTES_MAX:
        raise ValueError(
            f"the payload of a control frame has at most {CONTROL_BYTES_MAX} bytes, not {len(payload)}"
        )
    return payload


class Dialed:
    """A connection that is opened by its ``with`` block, or by ``connect``, and again by a later
    ``with`` block once it was closed. Its methods are those of the open connection."""

    _NAMES: tuple[str, ...] = ("send", "recv", "ping", "pong")
    _connection: Any = None

    def _bind(self, connection: Any) -> None:
        self._connection = connection
        # A call takes no detour.
        for name in self._NAMES:
            setattr(self, name, getattr(connection, name))

    def __getattr__(self, name: str) -> Any:
        if name in self._NAMES:
            raise RuntimeError("the connection is not open: use it in a with block")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def open(self) -> bool:
        """Whether messages may be sent."""
        return self._connection is not None and self._connection.open

    @property
    def closed(self) -> bool:
        """Whether the connection is closed, or was not opened yet."""
        return not self.open

    @property
    def local_address(self) -> Any:
        """The address of this end; ``None`` unless the connection is open."""
        return self._connection.local_address if self.open else None

    @property
    def remote_address(self) -> Any:
        """The address of the server; ``None`` unless the connection is open."""
        return self._connection.remote_address if self.open else None

    @property
    def subprotocol(self) -> str | None:
        """The subprotocol that the server selected."""
        return self._connection and self._connection.subprotocol

    @property
    def close_code(self) -> int | None:
        """The code that the server closed with."""
        return self._connection and self._connection.close_code

    @property
    def close_reason(self) -> str | None:
        """The reason that the server closed with."""
        return self._connection and self._connection.close_reason

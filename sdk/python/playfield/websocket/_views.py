"""What programs ask the parts of a connection of ``websockets`` for, of one that is compiled."""

from __future__ import annotations

import os
import socket
from typing import Any

from .protocol import Side, State

__all__ = ["ConnectionProtocol", "Extension", "Socket"]


class Extension:
    """An extension that both ends agreed on."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Extension({self.name!r})"


class ConnectionProtocol:
    """A view of a connection, with what is of use of the protocol object of ``websockets``."""

    side = Side.CLIENT

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def state(self) -> State:
        """``State.OPEN``, ``CLOSING`` or ``CLOSED``."""
        return self._connection.state  # type: ignore[no-any-return]

    @property
    def subprotocol(self) -> str | None:
        """The subprotocol that the server selected."""
        return self._connection.subprotocol  # type: ignore[no-any-return]

    @property
    def extensions(self) -> list[Extension]:
        """The extensions that both ends agreed on."""
        values = self._connection.response.headers.get_all("Sec-WebSocket-Extensions")
        agreed = [one for value in values for one in value.split(",")]
        return [Extension(one.partition(";")[0].strip()) for one in agreed]

    @property
    def close_code(self) -> int | None:
        """As the connection has it."""
        return self._connection.close_code  # type: ignore[no-any-return]

    @property
    def close_reason(self) -> str | None:
        """As the connection has it."""
        return self._connection.close_reason  # type: ignore[no-any-return]

    @property
    def close_exc(self) -> Exception:
        """What ``recv`` raises once all messages are taken."""
        assert self.state is State.CLOSED, "the connection isn't closed yet"
        return self._connection._closed_error()  # type: ignore[no-any-return]

    @property
    def logger(self) -> Any:
        """As the connection has it."""
        return self._connection.logger

    @property
    def id(self) -> Any:
        """As the connection has it."""
        return self._connection.id

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"connection.protocol has no {name} here: the protocol is compiled. Use the methods of the "
            "connection: recv, send, ping, close"
        )


class Socket:
    """A view of the socket of a blocking connection: its names and options, and with TLS what an
    ``ssl.SSLSocket`` says about it. The connection itself reads, writes and closes."""

    _OF_TLS = (
        "cipher",
        "context",
        "getpeercert",
        "selected_alpn_protocol",
        "server_hostname",
        "session_reused",
        "version",
    )
    _INSTEAD = {
        "close": "use connection.close() or abort()",
        "gettimeout": "give recv(timeout=…)",
        "recv": "use connection.recv()",
        "send": "use connection.send()",
        "sendall": "use connection.send()",
        "setblocking": "give recv(timeout=…)",
        "settimeout": "give recv(timeout=…)",
    }

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def _do(self, method: str, *arguments: Any) -> Any:
        descriptor = self._connection.fileno()
        if descriptor < 0:
            raise OSError(9, "the connection is closed")
        with socket.socket(fileno=os.dup(descriptor)) as sock:
            return getattr(sock, method)(*arguments)

    def fileno(self) -> int:
        """The descriptor's number, or -1 once the connection is lost."""
        return self._connection.fileno()  # type: ignore[no-any-return]

    def getsockname(self) -> Any:
        """The address of this end."""
        return self._connection.local_address

    def getpeername(self) -> Any:
        """The address of the server."""
        return self._connection.remote_address

    def getsockopt(self, *arguments: int) -> Any:
        """As that of ``socket.socket``."""
        return self._do("getsockopt", *arguments)

    def setsockopt(self, *arguments: Any) -> None:
        """As that of ``socket.socket``."""
        self._do("setsockopt", *arguments)

    def shutdown(self, how: int) -> None:
        """As that of ``socket.socket``."""
        self._do("shutdown", how)

    def __getattr__(self, name: str) -> Any:
        tls = self._connection._tls_view()
        if name in self._OF_TLS and tls is not None:
            return getattr(tls, name)
        instead = self._INSTEAD.get(name, "fileno() is its descriptor")
        raise AttributeError(f"connection.socket has no {name} here: {instead}")

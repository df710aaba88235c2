"""The exceptions of the client of a node."""

from __future__ import annotations

__all__ = ["ConnectionFailed", "PlayfieldError", "Refused", "SchemaError", "SessionEnded"]


class PlayfieldError(Exception):
    """What the client of a node raises. ``code`` is the protocol's name for why (``docs/protocol.md``,
    "Errors"), or a room's own number as text; ``None`` if it is no matter between client and
    node."""

    code: str | None = None


class Refused(PlayfieldError):
    """The node or the room has refused something.

    ``code`` says why, such as ``room_full``. With ``connection_lost``, ``shutting_down`` and
    ``room_closed`` it is unknown whether a request under way was done. ``text`` is for people.
    ``retry_after`` is how long to wait before asking again, in seconds, if the node says so.
    """

    def __init__(self, code: str | None, text: str, retry_after: float | None = None) -> None:
        super().__init__(code, text, retry_after)
        self.code = code
        self.text = text
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.text} ({self.code})" if self.code else self.text


class ConnectionFailed(PlayfieldError, ConnectionError):
    """The server at the URL is not a node, speaks another protocol (TLS or none), or has ended
    the connection. ``code`` is ``connection_lost``. It is an ``OSError``, as what ``connect`` raises if
    nobody answers at all."""

    code = "connection_lost"


class SchemaError(PlayfieldError, ValueError):
    """A message, or the options of a room, do not match the node's schema. Nothing was sent."""


class SessionEnded(PlayfieldError):
    """The session is over. ``code`` is ``left`` if this client has closed it, and ``connection_lost``
    if the connection could not be restored in ``reconnect_timeout`` seconds."""

    def __init__(self, text: str, code: str | None = None) -> None:
        super().__init__(text, code)
        self.text = text
        self.code = code

    def __str__(self) -> str:
        return self.text


def closed() -> SessionEnded:
    """What is raised once the program has closed its client."""
    return SessionEnded("the client is closed", "left")

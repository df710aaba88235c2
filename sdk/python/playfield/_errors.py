"""The exceptions of the client of a node."""

from __future__ import annotations

__all__ = ["Refused", "SchemaError", "SessionEnded"]


class Refused(Exception):
    """The node or the room has refused a request, or it is unknown whether it was carried out.

    ``code`` is the protocol's name for why, such as ``room_full``; ``None`` if the answer is lost.
    ``retry_after`` is how long to wait before asking again, in seconds, if the node says so.
    """

    def __init__(self, code: str | None, text: str, retry_after: float | None = None) -> None:
        super().__init__(f"{text} ({code})" if code else text)
        self.code = code
        self.text = text
        self.retry_after = retry_after


class SchemaError(ValueError):
    """A message, or the options of a room, do not match the node's schema. Nothing was sent."""


class SessionEnded(Exception):
    """The session is over: it was closed, or the connection could not be restored in time."""

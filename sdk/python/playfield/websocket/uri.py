"""``websockets.uri``'s names: the parts of a URI."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from .exceptions import InvalidURI

__all__ = ["WebSocketURI", "parse_uri"]

_DELIMITERS = ":/?#[]@!$&'()*+,;="


@dataclass
class WebSocketURI:
    """The parts of a URI: ``port`` is set even if it is the default, ``path`` and ``query`` may be
    empty."""

    secure: bool
    host: str
    port: int
    path: str
    query: str
    username: str | None = None
    password: str | None = None

    @property
    def resource_name(self) -> str:
        """The path and the query, as the request has them."""
        return (self.path or "/") + (f"?{self.query}" if self.query else "")

    @property
    def user_info(self) -> tuple[str, str] | None:
        """The user and the password."""
        return None if self.username is None else (self.username, self.password or "")


def parse_uri(uri: str) -> WebSocketURI:
    """Take a URI apart. Raises ``InvalidURI`` where ``connect`` does."""
    from ._common import Target

    target = Target.of(uri)
    parts = urllib.parse.urlsplit(uri)
    path, query = parts.path, parts.query
    if not uri.isascii():
        path, query = (urllib.parse.quote(part, safe=_DELIMITERS) for part in (path, query))
    username = parts.username and urllib.parse.unquote(parts.username)
    password = urllib.parse.unquote(parts.password or "") if username is not None else None
    return WebSocketURI(target.secure, target.host, target.port, path, query, username, password)

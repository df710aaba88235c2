"""``websockets.headers``'s names: values of headers."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

from ._alternatives import missing

__all__ = [
    "build_authorization_basic",
    "build_host",
    "build_subprotocol",
    "validate_subprotocols",
]

_is_token = re.compile(r"[-!#$%&'*+.^_`|~0-9a-zA-Z]+").fullmatch


def build_authorization_basic(username: str, password: str) -> str:
    """The value of ``Authorization`` for a user (RFC 7617)."""
    pair = f"{username}:{password}".encode(errors="surrogateescape")
    return "Basic " + base64.b64encode(pair).decode()


def build_host(host: str, port: int, secure: bool, *, always_include_port: bool = False) -> str:
    """The value of ``Host``."""
    if ":" in host:
        host = f"[{host}]"
    is_default = port == (443 if secure else 80)
    return host if is_default and not always_include_port else f"{host}:{port}"


def build_subprotocol(subprotocols: Sequence[str]) -> str:
    """The value of ``Sec-WebSocket-Protocol``."""
    return ", ".join(subprotocols)


def validate_subprotocols(subprotocols: Sequence[str]) -> None:
    """Refuse what :func:`build_subprotocol` can't take, by ``TypeError`` and ``ValueError``."""
    if isinstance(subprotocols, str) or not isinstance(subprotocols, Sequence):
        raise TypeError(
            f"subprotocols must be a list, not a {type(subprotocols).__name__}"
        )
    for subprotocol in subprotocols:
        if not _is_token(subprotocol):
            raise ValueError(f"invalid subprotocol: {subprotocol}")


_PARSED = "the handshake is read in compiled code: connection.response has the headers"

__getattr__ = missing(
    __name__,
    {
        "build_extension": _PARSED,
        "build_www_authenticate_basic": "there is no server in this package",
        "parse_authorization_basic": "there is no server in this package",
        "parse_connection": _PARSED,
        "parse_extension": _PARSED,
        "parse_subprotocol": _PARSED,
        "parse_upgrade": _PARSED,
    },
)

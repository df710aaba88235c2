"""``websockets``'s names that this package lacks, and what to use in their place: an error says so, as
one that ignores them would not do what the program wants."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["asks_for_all", "checks_arguments", "missing"]

F = TypeVar("F", bound=Callable[..., Any])

_ARGUMENTS = {
    "create_protocol": "give create_connection, a subclass of ClientConnection",
    "extra_headers": "it is additional_headers",
    "flags": "give sock, a connected socket",
    "interleave": "addresses of both families take turns; give sock, a connected socket",
    "klass": "give create_connection, a subclass of ClientConnection",
    "loop": "it is the loop that runs",
    "proto": "give sock, a connected socket",
    "read_limit": "give max_queue",
    "ssl_shutdown_timeout": "give close_timeout",
    "timeout": "give open_timeout or close_timeout",
}


def checks_arguments(function: F) -> F:
    """Has a call with an argument of ``websockets`` that is not here say what to give."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        for name in options:
            if name in _ARGUMENTS:
                raise TypeError(f"connect() has no argument {name!r} here: {_ARGUMENTS[name]}")
        return function(*arguments, **options)

    return call  # type: ignore[return-value]


_METHODS = {
    # Of `connect`.
    "enable_tls": "give ssl, an ssl.SSLContext",
    "handle_redirect": "override process_redirect",
    "open_connection": "override process_redirect, or give sock, a connected socket",
    "open_socket": "give sock, a connected socket",
    "open_tcp_connection": "give sock, a connected socket",
    # Of `ClientConnection`.
    "acknowledge_pings": "override ping",
    "close_socket": "override close",
    "connection_lost": "await wait_closed() in a task",
    "connection_made": "override __init__ of a wrapper, or use what connect() returns",
    "data_received": "give on_message",
    "handshake": "give additional_headers, and read response",
    "keepalive": "give ping_interval and ping_timeout",
    "process_event": "give on_message",
    "read_message": "override recv",
    "recv_events": "override recv",
    "send_context": "override send",
    "send_data": "override send",
    "start_keepalive": "give ping_interval and ping_timeout",
}


def asks_for_all(subclass: type) -> None:
    """Refuses a subclass that overrides what this package never calls."""
    for name, instead in _METHODS.items():
        if callable(subclass.__dict__.get(name)):
            raise TypeError(
                f"{subclass.__name__}.{name} would never be called: {instead}. Only websockets has "
                f"the method {name}"
            )


_SERVER = "there is no server in this package: import it from websockets"
_SANS_IO = "connections are compiled here, and have no protocol object: import it from websockets"
_NAMES = {
    "AbortHandshake": _SERVER,
    "BasicAuthWebSocketServerProtocol": _SERVER,
    "ClientProtocol": _SANS_IO,
    "Frame": "frames are read and written in compiled code: import it from websockets",
    "InvalidStatusCode": "catch InvalidStatus, whose response.status_code has the status",
    "Protocol": _SANS_IO,
    "RedirectHandshake": "override process_redirect of connect",
    "Router": _SERVER,
    "Server": _SERVER,
    "ServerConnection": _SERVER,
    "ServerProtocol": _SANS_IO,
    "WebSocketServer": _SERVER,
    "WebSocketServerProtocol": _SERVER,
    "basic_auth": _SERVER,
    "basic_auth_protocol_factory": _SERVER,
    "route": _SERVER,
    "serve": _SERVER,
    "unix_route": _SERVER,
    "unix_serve": _SERVER,
}


def missing(module: str, others: dict[str, str] | None = None) -> Callable[[str], Any]:
    """``__getattr__`` of a module: says what to use for a name of ``websockets``."""
    names = {**_NAMES, **(others or {})}

    def find(name: str) -> Any:
        if name in names:
            # `from module import name` would replace the text of an `AttributeError`.
            raise ImportError(f"{module} has no {name}: {names[name]}", name=module)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return find

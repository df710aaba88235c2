"""``websockets.extensions.permessage_deflate``'s names: what compression is offered."""

from __future__ import annotations

from typing import Any

__all__ = ["ClientPerMessageDeflateFactory", "enable_client_permessage_deflate"]


class ClientPerMessageDeflateFactory:
    """What to offer of permessage-deflate (RFC 7692, 7.1), for ``extensions=[…]`` of ``connect``.

    Unless it is told otherwise, each end keeps its context: messages may refer to earlier ones, which
    makes similar messages several times shorter. Once a connection has received a compressed
    message, it holds up to 55 KiB for that; once it has sent one, up to 371 KiB. With
    ``server_no_context_takeover`` and ``client_no_context_takeover`` it holds nothing.

    ``server_max_window_bits`` and ``client_max_window_bits`` (8 or 9 to 15) limit how far back a
    message refers, as a power of two. ``compress_settings`` is ignored.
    """

    name = "permessage-deflate"

    def __init__(
        self,
        server_no_context_takeover: bool = False,
        client_no_context_takeover: bool = False,
        server_max_window_bits: int | None = None,
        client_max_window_bits: int | bool | None = True,
        compress_settings: Any = None,
    ) -> None:
        if server_max_window_bits is not None and not 8 <= server_max_window_bits <= 15:
            raise ValueError("server_max_window_bits must be between 8 and 15")
        if client_max_window_bits not in (None, True) and not 9 <= client_max_window_bits <= 15:
            raise ValueError("client_max_window_bits must be between 9 and 15")
        self.server_no_context_takeover = server_no_context_takeover
        self.client_no_context_takeover = client_no_context_takeover
        self.server_max_window_bits = server_max_window_bits
        self.client_max_window_bits = client_max_window_bits
        self.compress_settings = compress_settings


def enable_client_permessage_deflate(extensions: Any) -> list:
    """The extensions, with permessage-deflate if it is not among them."""
    named = list(extensions or ())
    if any(extension.name == ClientPerMessageDeflateFactory.name for extension in named):
        return named
    return [*named, ClientPerMessageDeflateFactory()]

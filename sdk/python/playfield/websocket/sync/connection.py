"""``websockets.sync.connection``'s names."""

from .._sync import ClientConnection as Connection

__all__ = ["Connection"]

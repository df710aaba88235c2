"""``websockets.sync.client``'s names."""

from .._sync import ClientConnection, connect, unix_connect

__all__ = ["ClientConnection", "connect", "unix_connect"]

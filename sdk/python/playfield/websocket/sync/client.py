"""``websockets.sync.client``'s names."""

from .._reconnect import reconnect, unix_reconnect
from .._sync import ClientConnection, connect, unix_connect

__all__ = ["ClientConnection", "connect", "reconnect", "unix_connect", "unix_reconnect"]

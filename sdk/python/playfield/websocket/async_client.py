"""``websocket_rs.async_client``'s names."""

from ..websocket_rs.async_client import ClientConnection, connect

__all__ = ["ClientConnection", "connect"]

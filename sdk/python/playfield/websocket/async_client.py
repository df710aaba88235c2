"""``websocket_rs.async_client``'s names."""

from ._async import ClientConnection, connect

__all__ = ["ClientConnection", "connect"]

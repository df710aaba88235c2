"""``websocket_rs.native_client``'s names."""

from ..websocket_rs.native_client import NativeClient, NativeClientBuffered, WSMessage, connect

__all__ = ["NativeClient", "NativeClientBuffered", "WSMessage", "connect"]

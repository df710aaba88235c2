"""``websocket_rs.sync``'s names."""

from . import client

__all__ = ["client"]

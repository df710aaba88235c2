"""``websockets.asyncio.client``'s names."""

from .._async import ClientConnection, connect, process_exception

__all__ = ["ClientConnection", "connect", "process_exception"]

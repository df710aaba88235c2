"""``websockets.asyncio.client``'s names."""

from .._async import ClientConnection, connect, process_exception, unix_connect

__all__ = ["ClientConnection", "connect", "process_exception", "unix_connect"]

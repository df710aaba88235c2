"""``websockets.asyncio.client``'s names."""

from .._async import ClientConnection, backoff, connect, process_exception, unix_connect

__all__ = ["ClientConnection", "backoff", "connect", "process_exception", "unix_connect"]

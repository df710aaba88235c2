"""``websockets.asyncio.connection``'s names."""

from .._async import ClientConnection as Connection
from .._broadcast import broadcast

__all__ = ["Connection", "broadcast"]

"""Playfield for Python.

``playfield.connect`` enters the rooms of a node. ``playfield.websocket`` is a WebSocket client for
asyncio, ``playfield.websocket.sync`` one for blocking code; both speak to any server.
"""

from ._playfield import __version__
from .client import Client, Refused, Room, SessionEnded, connect

__all__ = ["Client", "Refused", "Room", "SessionEnded", "__version__", "connect"]

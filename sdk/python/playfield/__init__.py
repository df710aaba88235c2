"""Playfield for Python.

``playfield.websocket`` is a WebSocket client for asyncio, ``playfield.websocket.sync`` one for
blocking code. Both speak to any server.
"""

from ._playfield import __version__

__all__ = ["__version__"]

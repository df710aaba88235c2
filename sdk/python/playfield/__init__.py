"""Playfield for Python.

``playfield.connect`` enters the rooms of a node, for asyncio; ``playfield.sync.connect`` is the same
for blocking code. ``playfield.websocket`` is a WebSocket client for asyncio,
``playfield.websocket.sync`` one for blocking code; both speak to any server.
"""

from . import sync
from ._errors import Refused, SchemaError, SessionEnded
from ._playfield import __version__
from .channels import History, Member, Members, Position, Presence, Publication, Subscription
from .client import Client, connect
from .devices import Command, Device
from .room import Room, RoomInfo

__all__ = [
    "Client",
    "Command",
    "Device",
    "History",
    "Member",
    "Members",
    "Position",
    "Presence",
    "Publication",
    "Refused",
    "Room",
    "RoomInfo",
    "SchemaError",
    "SessionEnded",
    "Subscription",
    "__version__",
    "connect",
    "sync",
]

"""Playfield for Python.

``playfield.connect`` enters the rooms of a node, for asyncio; ``playfield.sync.connect`` is the same
for blocking code. ``playfield.websocket`` is a WebSocket client for asyncio,
``playfield.websocket.sync`` one for blocking code; both speak to any server.
"""

from . import status, sync
from ._errors import ConnectionFailed, PlayfieldError, Refused, SchemaError, SessionEnded
from ._playfield import __version__
from .channels import (
    History,
    Member,
    Members,
    Missed,
    Position,
    Presence,
    Publication,
    Subscribed,
    Subscription,
)
from .client import Client, connect
from .devices import Command, Device
from ._view import MapView, View, plain
from .room import Room, RoomInfo

__all__ = [
    "Client",
    "Command",
    "ConnectionFailed",
    "Device",
    "History",
    "MapView",
    "Member",
    "Members",
    "Missed",
    "PlayfieldError",
    "Position",
    "Presence",
    "Publication",
    "Refused",
    "Room",
    "RoomInfo",
    "SchemaError",
    "SessionEnded",
    "Subscribed",
    "Subscription",
    "View",
    "__version__",
    "connect",
    "plain",
    "status",
    "sync",
]

"""Has libraries that import ``websockets`` use this package's clients.

::

    import playfield.websocket.replace  # before the library

    import openai
"""

from __future__ import annotations

import importlib
import importlib.util
import sys

import playfield.websocket

__all__: list[str] = []

#: The modules of clients.
_CLIENTS = {
    "": ("ClientConnection", "connect", "unix_connect"),
    ".asyncio.client": ("ClientConnection", "connect", "unix_connect"),
    ".sync.client": (
        "ClientConnection",
        "connect",
        "reconnect",
        "unix_connect",
        "unix_reconnect",
    ),
}
_OTHERS = (
    ".asyncio",
    ".asyncio.connection",
    ".client",
    ".datastructures",
    ".exceptions",
    ".extensions",
    ".extensions.permessage_deflate",
    ".frames",
    ".headers",
    ".http11",
    ".protocol",
    ".sync",
    ".sync.connection",
    ".typing",
    ".uri",
    ".version",
)


def _replace() -> None:
    ours = playfield.websocket.__name__
    if importlib.util.find_spec("websockets") is not None:
        # Its servers stay, its exceptions are ours, and it has whatever this package lacks.
        for module, names in _CLIENTS.items():
            theirs = importlib.import_module("websockets" + module)
            for name in names:
                setattr(theirs, name, getattr(importlib.import_module(ours + module), name))
        return
    for module in (*_CLIENTS, *_OTHERS):
        sys.modules["websockets" + module] = importlib.import_module(ours + module)


_replace()

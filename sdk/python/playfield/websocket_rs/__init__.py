"""The API of ``websocket-rs``: a program runs with ``playfield.websocket_rs`` for ``websocket_rs``
in its imports.

::

    from playfield.websocket_rs import connect

    async with await connect("ws://localhost:8765") as connection:
        connection.send(b"hello")
        print(await connection.recv())

:mod:`playfield.websocket` is what it is made of, and has more.
"""

from .. import _playfield
from . import async_client, native_client, sync
from .native_client import WSMessage, connect

__version__ = _playfield.__version__

__all__ = ["WSMessage", "async_client", "connect", "native_client", "sync"]

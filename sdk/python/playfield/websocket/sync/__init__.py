"""A WebSocket client for blocking code, with the API of ``websockets.sync``.

::

    from playfield.websocket.sync import connect

    with connect("ws://localhost:8765") as connection:
        connection.send("hello")
        print(connection.recv())
"""

from .._reconnect import reconnect, unix_reconnect
from .._sync import ClientConnection, connect, unix_connect

__all__ = ["ClientConnection", "connect", "reconnect", "unix_connect", "unix_reconnect"]

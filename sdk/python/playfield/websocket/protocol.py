"""``websockets.protocol``'s names: the states of a connection."""

from __future__ import annotations

import enum

from ._alternatives import missing

try:
    # Programs compare states by `is`.
    from websockets.protocol import Side, State
except ImportError:

    class State(enum.IntEnum):  # type: ignore[no-redef]
        """Where a connection is in its life."""

        CONNECTING, OPEN, CLOSING, CLOSED = range(4)

    class Side(enum.IntEnum):  # type: ignore[no-redef]
        """Which end of a connection it is."""

        SERVER, CLIENT = range(2)


__all__ = ["Side", "State"]

CONNECTING, OPEN, CLOSING, CLOSED = State.CONNECTING, State.OPEN, State.CLOSING, State.CLOSED
SERVER, CLIENT = Side.SERVER, Side.CLIENT

__getattr__ = missing(__name__)

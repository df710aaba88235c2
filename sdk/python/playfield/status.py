"""What happens to the connection of a client."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ._errors import PlayfieldError

if TYPE_CHECKING:
    from .room import Room

__all__ = ["AttemptFailed", "Back", "Ended", "Lost", "NewSession", "Resumed", "Weak"]


@dataclasses.dataclass(frozen=True)
class Lost:
    """The connection was lost. The client connects again by itself. Rooms stay as they are, and
    what is sent meanwhile waits.

    - ``error`` (``PlayfieldError``): why: ``connection_lost``, or what the node gave as the
      reason, such as ``shutting_down``.
    """

    error: PlayfieldError


@dataclasses.dataclass(frozen=True)
class AttemptFailed:
    """An attempt to restore the connection has failed. Another follows.

    - ``error`` (``Exception``): why: the node could not be reached or did not answer, or the
      token could not be had.
    """

    error: Exception


@dataclasses.dataclass(frozen=True)
class Resumed:
    """The connection is restored, and the session goes on.

    - ``away`` (``float``): how long the connection was lost, in seconds.
    - ``lost`` (``list[tuple[Room | None, int]]``): what the node had to forget meanwhile: how
      many messages, by room; ``None`` for those of no room. Events are reported by
      :meth:`Room.on_missed`; requests have failed with ``connection_lost``.
    """

    away: float
    lost: list[tuple[Room | None, int]]


@dataclasses.dataclass(frozen=True)
class Weak:
    """The connection is weak: a room with ticks, and all else, was not heard for about a second. If
    it stays so, the connection is lost some seconds later."""


@dataclasses.dataclass(frozen=True)
class Back:
    """The connection is no longer weak."""


@dataclasses.dataclass(frozen=True)
class NewSession:
    """The connection is restored, but the node no longer had the session: it has restarted, or
    the client was away for too long. All rooms have ended, and all requests have failed. Join
    the rooms again. Subscriptions and a device go on by themselves.

    - ``away`` (``float``): how long the connection was lost, in seconds.
    - ``unconfirmed`` (``int``): how many messages without an answer the node has not confirmed:
      it is unknown whether they were carried out.
    """

    away: float
    unconfirmed: int


@dataclasses.dataclass(frozen=True)
class Ended:
    """The session has ended for good. This is the last event.

    - ``error`` (``Exception``): why.
    - ``unconfirmed`` (``int``): as in :class:`NewSession`.
    """

    error: Exception
    unconfirmed: int

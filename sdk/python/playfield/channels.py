"""Channels, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import Refused
from ._feed import Feed
from ._values import call

if TYPE_CHECKING:
    from .client import Client

__all__ = ["History", "Member", "Members", "Position", "Presence", "Publication", "Subscription"]


class Position(NamedTuple):
    """A place in a channel: after the publication with this offset."""

    epoch: int
    offset: int


class Publication(NamedTuple):
    """What was published."""

    offset: int
    #: The verified user who published it; ``None`` without one.
    user: str | None
    #: A JSON value or ``bytes``, as the channel's rule says.
    payload: Any


class Member(NamedTuple):
    """A session that subscribes."""

    session: int
    user: str | None
    name: str


class Presence(NamedTuple):
    """Another session subscribes, or does no longer."""

    #: Counts these messages. After a gap, ask for the members.
    sequence: int
    joined: bool
    member: Member


class Members(NamedTuple):
    """Who subscribes to a channel."""

    #: That of the last presence message before.
    sequence: int
    count: int
    #: As many as the node lists.
    members: list[Member]


class History(NamedTuple):
    """Past publications of a channel, the oldest first."""

    #: The place of the channel's last publication.
    last: Position
    publications: list[Publication]


class Subscription:
    """A subscription to a channel. It outlives lost connections and sessions.

    ``async for publication in subscription`` takes the publications one by one; 1,024 wait at
    most. It ends after :meth:`unsubscribe`, and raises :class:`Refused` if the node ends the
    subscription. ``async with`` unsubscribes at the end.
    """

    def __init__(self, client: Client, number: int, channel: str) -> None:
        self._client = client
        self._number = number
        self._feed = Feed()
        self._begun: asyncio.Future = client._loop.create_future()
        self._functions: list[Callable] = []
        self._presence: list[Callable] = []
        self.channel = channel
        #: Whether nothing was lost: all that was published since the position it started from, or
        #: since the connection was lost, has come or follows.
        self.recovered = False
        #: How many publications were missed, as far as is known: those that a restart of the node
        #: lost are not counted.
        self.missed = 0
        #: How many sessions subscribed when the node answered; 0 if this client may not know.
        self.members_count = 0
        #: Why the subscription has ended; ``None`` while it lasts, and after :meth:`unsubscribe`.
        self.ended: Exception | None = None
        self._position: Position | None = None

    @property
    def position(self) -> Position | None:
        """The place that was reached, to subscribe from later."""
        reached = self._client._core.position(self._number)
        if reached is not None:
            self._position = Position(*reached)
        return self._position

    @property
    def dropped(self) -> int:
        """How many publications were dropped because too many waited to be taken."""
        return self._feed.dropped

    def on(self, function: Callable[[Publication], Any]) -> Callable:
        """Call ``function(publication)`` for each publication. Then none waits to be iterated."""
        self._functions.append(function)
        return function

    def on_presence(self, function: Callable[[Presence], Any]) -> Callable:
        """Call ``function(presence)`` whenever another session subscribes, or does no longer. It
        takes ``presence=True`` at :meth:`Client.subscribe`."""
        self._presence.append(function)
        return function

    async def publish(self, payload: Any) -> int:
        """Publish to the channel. Returns the publication's offset."""
        return await self._client.publish(self.channel, payload)

    async def members(self) -> Members:
        """Ask who subscribes."""
        return await self._client.members(self.channel)

    async def history(self, *, since: Position | None = None, limit: int = 0) -> History:
        """Ask for past publications."""
        return await self._client.history(self.channel, since=since, limit=limit)

    async def unsubscribe(self) -> None:
        """End the subscription."""
        if self._client._subscriptions.pop(self._number, None) is not None:
            self.position  # It stays.
            self._client._core.unsubscribe(self._number)
            self._feed.end()
            await self._client._flush()

    def __aiter__(self) -> Feed:
        return self._feed

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, kind, value, traceback) -> None:
        if not self._client._core.is_finished:
            await self.unsubscribe()

    def _subscribed(self, recovered: bool, missed: int, members: int) -> None:
        self.recovered = recovered
        self.missed += missed
        self.members_count = members
        if not self._begun.done():
            self._begun.set_result(None)

    def _published(self, publication: Publication) -> None:
        for function in self._functions:
            call(function, publication)
        if not self._functions:
            self._feed.put(publication)

    def _present(self, presence: Presence) -> None:
        for function in self._presence:
            call(function, presence)

    def _end(self, why: Exception) -> None:
        self.ended = why
        self._feed.end(why)
        if not self._begun.done():
            self._begun.set_exception(why)
            self._begun.exception()

    def __repr__(self) -> str:
        return f"<Subscription {self.channel} at {self.position}>"

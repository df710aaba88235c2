"""Channels, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ._callbacks import plain_function, without
from ._errors import Refused
from ._feed import Feed
from ._values import call

if TYPE_CHECKING:
    from .client import Client

__all__ = [
    "History",
    "Member",
    "Members",
    "Missed",
    "Position",
    "Presence",
    "Publication",
    "Subscribed",
    "Subscription",
]


R = TypeVar("R")


class Position(NamedTuple):
    """A place in a channel: after the publication with this offset.

    - ``epoch`` (``int``): the life of the channel: another one after it has ended, or the node
      has.
    - ``offset`` (``int``): the number of the publication.
    """

    epoch: int
    offset: int


class Publication(NamedTuple):
    """What was published.

    - ``offset`` (``int``): its number in the channel.
    - ``user`` (``str | None``): the verified user who published it; ``None`` without one.
    - ``payload`` (``Any``): a JSON value or ``bytes``, as the channel's rule says.
    """

    offset: int
    user: str | None
    payload: Any


class Member(NamedTuple):
    """A session that subscribes.

    - ``session`` (``int``): the session's number.
    - ``user`` (``str | None``): the verified user; ``None`` without one.
    - ``name`` (``str``): the display name.
    """

    session: int
    user: str | None
    name: str


class Presence(NamedTuple):
    """Another session subscribes, or does no longer.

    - ``sequence`` (``int``): counts these messages. After a gap, ask for the members.
    - ``joined`` (``bool``): whether it subscribes, or does no longer.
    - ``member`` (``Member``): the session.
    """

    sequence: int
    joined: bool
    member: Member


class Subscribed(NamedTuple):
    """The node has answered the subscription.

    - ``recovered`` (``bool``): whether nothing was lost: all that was published since the
      position that was reached follows, or there was none, as in a first subscription.
    - ``missed`` (``int | None``): how many publications will not come; ``None`` if that is not
      known, because the channel has ended meanwhile, or the node has restarted. It is 0 if
      nothing was lost.
    - ``members`` (``int``): how many sessions subscribe; 0 if this client may not know.
    """

    recovered: bool
    missed: int | None
    members: int


class Missed(NamedTuple):
    """The node has dropped publications before the next one, because this client was too slow.

    - ``publications`` (``int``): how many.
    """

    publications: int


class Members(NamedTuple):
    """Who subscribes to a channel.

    - ``sequence`` (``int``): that of the last presence message before.
    - ``count`` (``int``): how many sessions subscribe.
    - ``members`` (``list[Member]``): as many as the node lists.
    """

    sequence: int
    count: int  # type: ignore[assignment]  # It hides the method of a tuple.
    members: list[Member]


class History(NamedTuple):
    """Past publications of a channel, the oldest first.

    - ``last`` (``Position``): the place of the channel's last publication.
    - ``publications`` (``list[Publication]``): the publications.
    """

    last: Position
    publications: list[Publication]


class Subscription:
    """A subscription to a channel. It outlives lost connections and sessions.

    ``async for publication in subscription`` takes the publications one by one; 1,024 wait at
    most. It ends after :meth:`unsubscribe`, and raises :class:`Refused` if the node ends the
    subscription. ``async with`` unsubscribes at the end. Its attributes:

    - ``channel`` (``str``): the channel's name.
    - ``recovered`` (``bool``): whether nothing was lost: all that was published since the position it
      started from, or since the connection was lost, has come or follows.
    - ``missed`` (``int``): how many publications were missed, as far as is known: those that a restart
      of the node lost are not counted.
    - ``dropped`` (``int``): how many were dropped because too many waited to be taken.
    - ``members_count`` (``int``): how many sessions subscribed when the node answered; 0 if this
      client may not know.
    - ``position`` (``Position | None``): the place that was reached, to subscribe from later.
    - ``ended`` (``Exception | None``): why the subscription has ended; ``None`` while it lasts, and
      after :meth:`unsubscribe`.
    """

    def __init__(
        self, client: Client, number: int, channel: str, since: Position | None = None
    ) -> None:
        self._client = client
        self._number = number
        self._feed = Feed()
        self._begun: asyncio.Future[Any] = client._loop.create_future()
        self._functions: list[Callable[..., Any]] = []
        self._presence: list[Callable[..., Any]] = []
        self._subscribes: list[Callable[..., Any]] = []
        self._misses: list[Callable[..., Any]] = []
        self._ends: list[Callable[..., Any]] = []
        self._feeds: list[Feed] = []
        self.channel = channel
        self.recovered = False
        self.missed = 0
        self.members_count = 0
        self.ended: Exception | None = None
        self._position: Position | None = None
        self._epoch = None if since is None else since[0]

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

    def on(self, function: Callable[[Publication], R]) -> Callable[[Publication], R]:
        """Call ``function(publication)`` for each publication. Then none waits to be iterated,
        and the same holds for :meth:`events`."""
        plain_function(function, "the function given to on")
        self._functions.append(function)
        return function

    def on_presence(self, function: Callable[[Presence], R]) -> Callable[[Presence], R]:
        """Call ``function(presence)`` whenever another session subscribes, or does no longer. It
        takes ``presence=True`` at :meth:`Client.subscribe`."""
        plain_function(function, "the function given to on_presence")
        self._presence.append(function)
        return function

    def on_subscribed(self, function: Callable[[Subscribed], R]) -> Callable[[Subscribed], R]:
        """Call ``function(subscribed)`` whenever the subscription goes on over a new connection, with
        what was lost meanwhile."""
        plain_function(function, "the function given to on_subscribed")
        self._subscribes.append(function)
        return function

    def on_missed(self, function: Callable[[int], R]) -> Callable[[int], R]:
        """Call ``function(publications)``, before the next publication, if so many were missed
        because this client was too slow."""
        plain_function(function, "the function given to on_missed")
        self._misses.append(function)
        return function

    def on_unsubscribed(self, function: Callable[[Exception], R]) -> Callable[[Exception], R]:
        """Call ``function(why)`` if the node ends the subscription, or the session ends."""
        plain_function(function, "the function given to on_unsubscribed")
        self._ends.append(function)
        return function

    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more, whatever of this subscription it was given to. Does nothing if
        it was given to nothing."""
        self._functions = without(self._functions, function)
        self._presence = without(self._presence, function)
        self._subscribes = without(self._subscribes, function)
        self._misses = without(self._misses, function)
        self._ends = without(self._ends, function)

    def events(self) -> Feed:
        """Everything that happens from now on, in its order: ``async for event in
        subscription.events()``, where an event is a :class:`Publication`, a :class:`Presence`, or
        tells of a loss: :class:`Subscribed` after a lost connection, or :class:`Missed`. It ends as
        the iteration of publications does; 1,024 events wait at most."""
        feed = Feed()
        if self.ended is not None or self._number not in self._client._subscriptions:
            feed.end(self.ended)
        else:
            self._feeds.append(feed)
        return feed

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
            for feed in [self._feed, *self._feeds]:
                feed.end()
            await self._client._flush()

    def __aiter__(self) -> Feed:
        return self._feed

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._client._core.is_finished:
            await self.unsubscribe()

    def _subscribed(self, at: Position, recovered: bool, missed: int, members: int) -> None:
        # Of a channel that has begun again, the past is not known.
        is_known = recovered or at.epoch == self._epoch
        subscribed = Subscribed(recovered, missed if is_known else None, members)
        self.recovered, self.members_count, self._epoch = recovered, members, at.epoch
        self.missed += missed
        if not self._begun.done():
            self._begun.set_result(None)
            return
        self._tell(self._subscribes, subscribed, subscribed)

    def _published(self, publication: Publication) -> None:
        self._tell(self._functions, publication, publication)
        if not self._functions and not self._feeds:
            self._feed.put(publication)

    def _missed(self, publications: int) -> None:
        self.missed += publications
        self._tell(self._misses, publications, Missed(publications))

    def _present(self, presence: Presence) -> None:
        self._tell(self._presence, presence, presence)

    def _tell(self, functions: list[Callable[..., Any]], value: Any, event: Any) -> None:
        for function in functions:
            call(function, value)
        for feed in self._feeds:
            feed.put(event)

    def _end(self, why: Exception) -> None:
        self.ended = why
        for feed in [self._feed, *self._feeds]:
            feed.end(why)
        if not self._begun.done():
            self._begun.set_exception(why)
            self._begun.exception()
        for function in self._ends:
            call(function, why)

    def __repr__(self) -> str:
        return f"<Subscription {self.channel} at {self.position}>"

"""Channels, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ._callbacks import plain_function, without
from ._early import Early
from ._errors import Refused
from ._feed import Feed
from ._threads import in_loop
from ._values import call

if TYPE_CHECKING:
    from .client import BaseClient

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


class BaseSubscription:
    """What subscriptions have in common, however a program waits."""

    def __init__(
        self,
        client: BaseClient[Any, Any, Any],
        number: int,
        channel: str,
        since: Position | None = None,
    ) -> None:
        self._client = client
        self._thread: Any = client._thread
        self._number = number
        self._feed: Feed = Feed()
        self._begun: asyncio.Future[Any] = client._loop.create_future()
        kinds = (Publication, Presence, Subscribed, Missed)
        self._functions: dict[type[Any], list[Callable[..., Any]]] = {kind: [] for kind in kinds}
        self._ends: list[Callable[..., Any]] = []
        self._feeds: list[Feed] = []
        self._early = Early(client._loop, self._deliver)
        self.channel = channel
        self.recovered = False
        self.missed = 0
        self.members_count = 0
        self.ended: Exception | None = None
        self._position: Position | None = None
        self._epoch = None if since is None else since[0]

    @property
    def position(self) -> Position | None:
        """``Position | None``: the place that was reached, to subscribe from later."""
        reached = self._client._core.position(self._number)
        if reached is not None:
            self._position = Position(*reached)
        return self._position

    @property
    def dropped(self) -> int:
        """``int``: how many publications were dropped because too many waited to be taken."""
        return self._feed.dropped

    @in_loop
    def on(self, function: Callable[[Publication], R]) -> Callable[[Publication], R]:
        """Call ``function(publication)`` for each publication. Then none waits to be iterated,
        and the same holds for :meth:`events`. This and the other functions are called with what came
        before, too, if nobody listened for it yet: the last 1,024 events."""
        self._listen(Publication, plain_function(function, "the function given to on"))
        return function

    @in_loop
    def on_presence(self, function: Callable[[Presence], R]) -> Callable[[Presence], R]:
        """Call ``function(presence)`` whenever another session subscribes, or does no longer. It
        takes ``presence=True`` at :meth:`Client.subscribe`."""
        self._listen(Presence, plain_function(function, "the function given to on_presence"))
        return function

    @in_loop
    def on_subscribed(self, function: Callable[[Subscribed], R]) -> Callable[[Subscribed], R]:
        """Call ``function(subscribed)`` whenever the subscription goes on over a new connection, with
        what was lost meanwhile."""
        self._listen(Subscribed, plain_function(function, "the function given to on_subscribed"))
        return function

    @in_loop
    def on_missed(self, function: Callable[[int], R]) -> Callable[[int], R]:
        """Call ``function(publications)``, before the next publication, if so many were missed
        because this client was too slow."""
        self._listen(Missed, plain_function(function, "the function given to on_missed"))
        return function

    @in_loop
    def on_unsubscribed(self, function: Callable[[Exception], R]) -> Callable[[Exception], R]:
        """Call ``function(why)`` if the node ends the subscription, or the session ends. If this has
        happened already, it is called soon."""
        plain_function(function, "the function given to on_unsubscribed")
        self._ends.append(function)
        if self.ended is not None:
            self._client._loop.call_soon(self._tell_end)
        return function

    @in_loop
    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more, whatever of this subscription it was given to. Does nothing if
        it was given to nothing."""
        for kind, functions in self._functions.items():
            self._functions[kind] = without(functions, function)
        self._ends = without(self._ends, function)

    def _listened(self) -> Feed:
        feed = Feed()
        self._feeds.append(feed)
        self._takes_publications()
        self._early.listen(None)
        if self.ended is not None or self._number not in self._client._subscriptions:
            self._early.release()
            feed.end(self.ended)
        return feed

    async def _unsubscribe(self) -> None:
        if self._client._subscriptions.pop(self._number, None) is not None:
            self.position  # It stays.
            self._client._core.unsubscribe(self._number)
            self._early.release()
            for feed in [self._feed, *self._feeds]:
                feed.end()
            await self._client._flush()

    def _iterated(self) -> Feed:
        self._early.skip(Publication)
        return self._feed

    async def _exit(self) -> None:
        if not self._client._core.is_finished:
            await self._unsubscribe()

    def _subscribed(self, at: Position, recovered: bool, missed: int, members: int) -> None:
        # Of a channel that has begun again, the past is not known.
        is_known = recovered or at.epoch == self._epoch
        subscribed = Subscribed(recovered, missed if is_known else None, members)
        self.recovered, self.members_count, self._epoch = recovered, members, at.epoch
        self.missed += missed
        if not self._begun.done():
            self._begun.set_result(None)
            return
        self._early.put(Subscribed, subscribed)

    def _published(self, publication: Publication) -> None:
        if not self._functions[Publication] and not self._feeds:
            self._feed.put(publication)
        self._early.put(Publication, publication)

    def _missed(self, publications: int) -> None:
        self.missed += publications
        self._early.put(Missed, Missed(publications))

    def _present(self, presence: Presence) -> None:
        self._early.put(Presence, presence)

    def _listen(self, kind: type[Any], function: Callable[..., Any]) -> None:
        self._functions[kind].append(function)
        if kind is Publication:
            self._takes_publications()
        self._early.listen(kind)

    def _takes_publications(self) -> None:
        """What came before nobody iterates: it is passed on."""
        if self._early.keeps(Publication):
            self._feed.take_all()

    def _deliver(self, kind: type[Any], event: Any) -> None:
        for function in self._functions[kind]:
            call(function, event.publications if kind is Missed else event)
        for feed in self._feeds:
            feed.put(event)

    def _end(self, why: Exception) -> None:
        self.ended = why
        self._early.release()
        for feed in [self._feed, *self._feeds]:
            feed.end(why)
        if not self._begun.done():
            self._begun.set_exception(why)
            self._begun.exception()
        self._tell_end()

    def _tell_end(self) -> None:
        functions, self._ends = self._ends, []
        for function in functions:
            call(function, self.ended)

    def __repr__(self) -> str:
        return f"<Subscription {self.channel} at {self.position}>"


class Subscription(BaseSubscription):
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

    def events(self) -> Feed:
        """Everything that happens from now on, in its order: ``async for event in
        subscription.events()``, where an event is a :class:`Publication`, a :class:`Presence`, or
        tells of a loss: :class:`Subscribed` after a lost connection, or :class:`Missed`. What nobody
        listened for yet comes first. It ends as the iteration of publications does; 1,024 events
        wait at most."""
        return self._listened()

    async def publish(self, payload: Any) -> int:
        """Publish to the channel. Returns the publication's offset."""
        return await self._client._publish(self.channel, payload)

    async def members(self) -> Members:
        """Ask who subscribes."""
        return await self._client._members(self.channel)

    async def history(self, *, since: Position | None = None, limit: int = 0) -> History:
        """Ask for past publications."""
        return await self._client._history(self.channel, since, limit)

    async def unsubscribe(self) -> None:
        """End the subscription."""
        await self._unsubscribe()

    def __aiter__(self) -> Feed:
        return self._iterated()

    async def __aenter__(self) -> Subscription:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exit()

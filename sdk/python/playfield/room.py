"""A room that a client is in, for asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from ._backoff import pause
from ._callbacks import plain_function, plain_result, without
from ._early import UNKNOWN, Early
from ._errors import Refused, SchemaError
from ._feed import Feed
from ._names import class_name, is_dataclass
from ._playfield import RoomCopy
from ._shape import Schema, check_pattern, known, schema_of
from ._threads import in_loop
from ._values import call, log, made
from ._values import message as encoded
from ._view import View, view

if TYPE_CHECKING:
    from .client import BaseClient

__all__ = ["Room", "RoomInfo"]

#: How many attempts in a row to join again are made, and how long a stay lasts that ends the row, in
#: seconds.
OUTAGES_MAX = 30
LASTING = 5.0

R = TypeVar("R")
T = TypeVar("T")


class RoomInfo(NamedTuple):
    """A room in a list of rooms.

    - ``id`` (``str``): the room's id.
    - ``type`` (``str``): its type.
    - ``key`` (``str | None``): its key; ``None`` without one.
    - ``players`` (``int``): how many players are in it.
    - ``capacity`` (``int``): the most players.
    - ``locked`` (``bool``): whether it takes no more players.
    - ``metadata`` (``dict[str, str]``): what the room says about itself.
    """

    id: str
    type: str
    key: str | None
    players: int
    capacity: int
    locked: bool
    metadata: dict[str, str]


class BaseRoom:
    """What rooms have in common, however a program waits."""

    def __init__(self, client: BaseClient[Any, Any, Any]) -> None:
        self._client = client
        self._thread: Any = client._thread
        self._number = 0
        self.id = ""
        self.type = ""
        self.key: str | None = None
        self.player = 0
        self.info: dict[str, Any] = {}
        self.version = 0
        self.left: Refused | None = None
        self.status = "joined"
        # How a room like it is asked for, if it is joined again; how many stays in a row did not
        # last, and since when this one does.
        self._again: Any = None
        self._outages = 0
        self._since = 0.0
        self._joining: asyncio.Task[None] | None = None
        self._statuses: list[Callable[..., Any]] = []
        # The copy of a stay takes the place of the one before once it has a state.
        self._copy = self._next = RoomCopy()
        self._schema: Schema | None = None
        self._state: Any = None
        self._read_version = -1
        # Each function with the one that makes its argument.
        self._events: dict[str | None, list[tuple[Callable[..., Any], Callable[..., Any]]]] = {}
        self._missed: list[Callable[..., Any]] = []
        self._refused: list[Callable[..., Any]] = []
        self._lefts: list[Callable[..., Any]] = []
        self._feeds: list[Feed] = []
        self._early = Early(client._loop, self._deliver)
        self._changes: list[tuple[str, Callable[..., Any]]] = []
        self._waiters: list[asyncio.Future[Any]] = []
        self._has_state = client._loop.create_future()

    @property
    def state(self) -> View:
        """``View``: the copy of the state, as of the last sync: ``room.state.players["7"].name``. In a
        function that the client calls, it is that of the moment of what the function hears."""
        version = self.version
        if self._read_version != version:
            self._state, self._read_version = self._copy.state(), version
        of: View = view(self._state, self._schema and self._schema.state)
        return of

    @overload
    def on(self, event: type[T], function: Callable[[T], R]) -> Callable[[T], R]: ...

    @overload
    def on(self, event: str, function: Callable[[Any], R]) -> Callable[[Any], R]: ...

    @overload
    def on(self, event: None, function: Callable[[str, Any], R]) -> Callable[[str, Any], R]: ...

    def on(self, event: str | type[Any] | None, function: Callable[..., Any]) -> Callable[..., Any]:
        """Call ``function(payload)`` for each event of this name, or ``function(name, payload)``
        for each event if the name is ``None``. A dataclass stands for the event of its name, and is
        made of the payload. Events that nobody listened for yet are kept for the first function
        that does: the last 1,024 of a room, and 1 MiB.

        Raises :class:`SchemaError` if the room has no such event, as far as the schema is known, and
        ``TypeError`` for an ``async`` function. :meth:`off` removes the function."""
        plain_function(function, "the function given to on")
        heard = function
        if isinstance(event, type):
            kind, event = event, class_name(event)

            def heard(payload: Any) -> Any:
                return function(made(kind, payload))

        self._on(event, function, heard)
        return function

    @in_loop
    def _on(
        self, event: str | None, function: Callable[..., Any], heard: Callable[..., Any]
    ) -> None:
        self._check_event(event)
        self._events.setdefault(event, []).append((function, heard))
        self._early.listen(event)

    def _listened(self) -> Feed:
        feed = Feed()
        self._feeds.append(feed)
        self._early.listen(None)
        if self.left is not None:
            self._early.release()
            feed.end(self.left)
        return feed

    @in_loop
    def on_missed(self, function: Callable[[int], R]) -> Callable[[int], R]:
        """Call ``function(events)``, before the next event, if so many were missed: more happened
        while the connection was lost than the node keeps."""
        self._missed.append(plain_function(function, "the function given to on_missed"))
        return function

    @in_loop
    def on_refused(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(refused)`` whenever a message of :meth:`send` was refused."""
        self._refused.append(plain_function(function, "the function given to on_refused"))
        return function

    @in_loop
    def on_left(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(why)`` once this client is no longer in the room: the room has closed, has
        removed this client or was left, or the session has ended. ``why`` is :attr:`left`, whose
        ``code`` is such as ``kicked``. If this has happened already, it is called soon."""
        self._lefts.append(plain_function(function, "the function given to on_left"))
        if self.left is not None:
            self._client._loop.call_soon(self._tell_left)
        return function

    @in_loop
    def on_status(self, function: Callable[[str], R]) -> Callable[[str], R]:
        """Call ``function(status)`` whenever :attr:`status` changes: with ``"lost"`` when the stay has
        ended and a client with ``again=True`` joins again; with ``"joined"`` once it is another player,
        in what is perhaps another room; and with ``"left"`` at the end."""
        self._statuses.append(plain_function(function, "the function given to on_status"))
        return function

    @in_loop
    def on_change(
        self,
        pattern: str,
        function: Callable[[tuple[Any, ...], Any, Any], R],
    ) -> Callable[[tuple[Any, ...], Any, Any], R]:
        """Call ``function(path, old, new)`` whenever a place of the state changes.

        ``pattern`` is a path such as ``players.*.won``, with ``*`` for any one step and ``**`` at
        the end for any rest. ``path`` is a tuple; ``old`` or ``new`` is ``None`` where there is
        no value. A value that is new fires as a whole: ``members.*`` hears of a new member,
        ``members.*.name`` of a name that changes later, ``members.**`` of both.

        Raises :class:`SchemaError` if no change can have such a path, as far as the schema is known.
        """
        plain_function(function, "the function given to on_change")
        if self._schema is not None:
            check_pattern(self._schema.state, pattern)
        self._changes.append((pattern, function))
        self._watch()
        return function

    @in_loop
    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more: it was given to :meth:`on`, :meth:`on_change`,
        :meth:`on_left`, :meth:`on_missed`, :meth:`on_refused` or :meth:`on_status`. Does nothing if
        it was not."""
        for name, functions in self._events.items():
            self._events[name] = [pair for pair in functions if pair[0] != function]
        self._changes = [pair for pair in self._changes if pair[1] != function]
        self._watch()
        self._missed = without(self._missed, function)
        self._refused = without(self._refused, function)
        self._lefts = without(self._lefts, function)
        self._statuses = without(self._statuses, function)

    async def _request(self, message: Any, fields: Any, reply: type[Any] | None) -> Any:
        name, payload = _named(message, fields)
        await self._ready()
        number, copy = self._current(), self._copy
        request = self._client._core.request(number, copy, name, payload)
        answer = await self._client._ask(request, lambda data: copy.reply(name, data))
        return answer if reply is None else made(reply, answer)

    async def _changed(self) -> None:
        self._current()
        future = self._client._loop.create_future()
        self._waiters.append(future)
        await future

    async def _until(self, condition: Callable[[View], Any]) -> Any:
        plain_function(condition, "the condition")
        while not (result := plain_result(condition(self.state), "the condition")):
            await self._changed()
        return result

    def _check_event(self, name: str | None) -> None:
        if name is None or self._schema is None or name in self._schema.events:
            return
        raise SchemaError(f'the room has no event "{name}"; it has {known(name, self._schema.events)}')

    def _watch(self) -> None:
        """Has the changes kept that a function hears of."""
        self._copy.watch([pattern for pattern, _ in self._changes])

    async def _ready(self) -> None:
        """Waits while the room is joined again, or too much is unconfirmed."""
        while self.status == "lost":
            await self._changed()
        await self._client._ready()

    def _current(self) -> int:
        if self._client.ended is not None:
            raise self._client.ended.with_traceback(None)
        if self.left is not None:
            raise self.left.with_traceback(None)
        return self._number

    def _update(self, version: int) -> None:
        """The copy is another, unless the stay has not begun."""
        if self._copy is not self._next:
            return
        self.version = version
        self._wake()
        if self._changes:
            functions = [function for _, function in self._changes]
            for number, path, old, new in self._copy.changes():
                call(functions[number], path, old, new)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)

    def _event(self, number: int, payload: bytes) -> None:
        if self._copy is not self._next:
            # It waits for the schema.
            self._early.keep(UNKNOWN, (number, payload), len(payload))
        elif (name := self._copy.event_name(number)) is not None:
            # An event that the schema does not have can't be read.
            self._early.put(name, (number, payload), len(payload))

    def _deliver(self, name: str, event: tuple[int, bytes]) -> None:
        try:
            value = self._copy.event(*event)
        except ValueError as error:
            log.error("an event %s of the room %s can't be read: %s", name, self.id, error)
            return
        for _, heard in self._events.get(name, ()):
            call(heard, value)
        for _, function in self._events.get(None, ()):
            call(function, name, value)
        for feed in self._feeds:
            feed.put((name, value))

    def _begin(self, number: int, info: dict[str, Any], copy: RoomCopy) -> None:
        """It is joined, for the first time or again."""
        self._number, self.info, self._next = number, info, copy
        self.id, self.type, self.key = info["id"], info["room_type"], info.get("key")
        self.player = info["player"]
        if self._has_state.done():
            self._has_state = self._client._loop.create_future()

    def _entered(self) -> None:
        """The first state and the schema are there."""
        self._copy = copy = self._next
        self._schema = schema_of(copy.schema) if copy.schema else None
        self.version, self._read_version = copy.version, -1
        if not self._has_state.done():
            self._has_state.set_result(None)
        self._wake()
        for event in self._early.take_kept():
            self._event(*event)

    def _joined(self) -> None:
        """The program may have it."""
        self._since = time.monotonic()
        if self.status == "lost" and self.left is None:
            self._watch()
            self._stands("joined")
            self._wake()

    def _away(self, why: Refused, is_outage: bool) -> bool:
        """The stay has ended. Returns whether it is to begin again."""
        if self._again is None or not is_outage:
            self._end(why)
            return False
        if not self._has_state.done():
            self._fail([self._has_state], why)
        if self.status == "lost":
            return False  # Who joins it hears of this.
        if time.monotonic() - self._since > LASTING:
            self._outages = 0
        self._stands("lost")
        return True

    def _delay(self, backoff: tuple[float, float]) -> float:
        """How long to wait before the next attempt to join again."""
        self._outages += 1
        return pause(backoff, self._outages - 1)

    @staticmethod
    def _fail(futures: list[asyncio.Future[Any]], why: Refused) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(why)
                future.exception()

    def _end(self, why: Refused) -> None:
        if self.left is not None:
            return
        self.left = why
        self._stands("left")
        self._client._away.discard(self)
        if self._joining is not None:
            self._joining.cancel()
        self._early.release()
        self._fail([*self._waiters, self._has_state], why)
        for feed in self._feeds:
            feed.end(why)
        self._tell_left()

    def _stands(self, status: str) -> None:
        self.status = status
        for function in [*self._statuses]:
            call(function, status)

    def _tell_left(self) -> None:
        functions, self._lefts = self._lefts, []
        for function in functions:
            call(function, self.left)

    def __repr__(self) -> str:
        left = "" if self.left is None else f" left: {self.left.code}"
        return f"<Room {self.type} {self.id}{left} {self.state!r}>"


class Room(BaseRoom):
    """A room that this client is in. ``repr`` shows its state. Its attributes:

    - ``id`` (``str``): the room's id.
    - ``type`` (``str``): its type.
    - ``key`` (``str | None``): its key; ``None`` without one.
    - ``player`` (``int``): the number of the player that this client is.
    - ``info`` (``dict[str, Any]``): all that the node said of the room when this client joined it,
      such as ``tick_hz``: the fields of ``joined`` in ``docs/protocol.md``.
    - ``version`` (``int``): the number of the copy of the state, which grows with each snapshot and
      patch. Other clients' copies are numbered on their own.
    - ``state`` (:class:`View`): the copy of the state, as of the last sync.
    - ``left`` (``Refused | None``): why this client is no longer in the room, with a ``code``; ``None``
      while it is.
    - ``status`` (``str``): ``"joined"``, ``"lost"`` while a client with ``again=True`` joins it
      again, or ``"left"``.
    """

    def events(self) -> Feed:
        """The events from now on: ``async for name, payload in room.events()``. It raises
        :class:`Refused` once this client is no longer in the room. Events that nobody listened for
        yet come first.

        1,024 events wait at most; past that the oldest is dropped, and counted in ``dropped``.
        """
        return self._listened()

    @overload
    async def request(self, message: Any, fields: Any = None, *, reply: None = None) -> Any: ...

    @overload
    async def request(self, message: Any, fields: Any = None, *, reply: type[T]) -> T: ...

    async def request(
        self, message: Any, fields: Any = None, *, reply: type[Any] | None = None
    ) -> Any:
        """Send a message and return the room's reply.

        ``request("Play", {"place": 2})`` names the message; ``request(Play(place=2))`` takes the
        name and the fields of a dataclass. ``reply`` is a dataclass to make of the reply.

        Raises :class:`SchemaError` before anything is sent if the room has no such message, or a
        field is wrong, and :class:`Refused`.
        """
        return await self._request(message, fields, reply)

    async def send(self, message: Any, fields: Any = None) -> None:
        """Send a message that needs no reply. Its arguments are those of :meth:`request`. It waits
        while too much is unsent or unconfirmed."""
        name, payload = _named(message, fields)
        await self._ready()
        self._client._core.send(self._current(), self._copy, name, payload)
        await self._client._flush()

    async def changed(self) -> None:
        """Wait for the next sync that changes the state. Raises :class:`Refused` if this client is
        no longer in the room."""
        await self._changed()

    async def until(self, condition: Callable[[View], Any]) -> Any:
        """Wait until ``condition(state)`` is true, and return what it returned. Raises
        :class:`Refused` if this client is no longer in the room before it is."""
        return await self._until(condition)

    async def leave(self) -> None:
        """Leave the room."""
        if self.status == "lost":
            if self._client._rooms.get(self._number) is self:
                self._client._abandon(self)
            self._end(Refused("left", "this client has left the room"))
        elif self.left is None:
            await self._client._ask(self._client._core.leave(self._number))


def _named(message: Any, fields: Any) -> tuple[str, bytes]:
    """The name of a message, and its JSON."""
    if isinstance(message, str):
        return message, encoded(fields)
    if is_dataclass(message):
        if fields is not None:
            raise TypeError("a dataclass is the whole message; it takes no fields beside it")
        return class_name(type(message)), encoded(message)
    raise TypeError(f"a message is a name and its fields, or a dataclass, not {message!r}")

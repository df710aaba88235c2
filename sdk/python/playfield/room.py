"""A room that a client is in, for asyncio."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ._errors import Refused
from ._feed import WAITING_MAX, Feed
from ._values import View, call, dump, load, matches, view

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Room", "RoomInfo"]


class RoomInfo(NamedTuple):
    """A room in a list of rooms."""

    id: str
    type: str
    key: str | None
    players: int
    #: The most players.
    capacity: int
    #: Whether it takes no more players.
    locked: bool
    #: What the room says about itself.
    metadata: dict[str, str]


class Room:
    """A room that this client is in. ``repr`` shows its state."""

    def __init__(self, client: Client, number: int, room_id: str, room_type: str, key, player: int):
        self._client = client
        self._number = number
        #: The room's id, type and key (``None`` without one).
        self.id = room_id
        self.type = room_type
        self.key = key
        #: The number of the player that this client is.
        self.player = player
        #: The version of the copy.
        self.version = 0
        #: Why this client is no longer in the room; ``None`` while it is.
        self.left: Refused | None = None
        self._state: Any = None
        self._read_version = -1
        self._events: dict[str | None, list[Callable]] = {}
        self._missed: list[Callable] = []
        self._refused: list[Callable] = []
        self._feeds: list[Feed] = []
        # What came before anyone listened; ``None`` once someone does.
        self._early: deque | None = deque(maxlen=WAITING_MAX)
        self._changes: list[tuple[list[str], Callable]] = []
        self._waiters: list[asyncio.Future] = []
        self._has_state = client._loop.create_future()

    @property
    def state(self) -> View:
        """The copy of the state, as of the last sync: ``room.state.players["7"].name``."""
        version = self.version
        if self._read_version != version and self.left is None:
            text = self._client._core.state(self._number)
            if text is not None:
                self._state, self._read_version = json.loads(text), version
        return view(self._state)

    def on(self, event: str | None, function: Callable) -> Callable:
        """Call ``function(payload)`` for each event of this name, or ``function(name, payload)``
        for each event if the name is ``None``. Whoever listens first gets what came before, the
        last 1,024 events."""
        self._events.setdefault(event, []).append(function)
        self._listen()
        return function

    def events(self) -> Feed:
        """The events from now on: ``async for name, payload in room.events()``. It raises
        :class:`Refused` once this client is no longer in the room. Whoever listens first gets what
        came before.

        1,024 events wait at most; past that the oldest is dropped, and counted in ``dropped``.
        """
        feed = Feed()
        self._feeds.append(feed)
        if self.left is None:
            self._listen()
        else:
            self._release()
            feed.end(self.left)
        return feed

    def on_missed(self, function: Callable[[int], Any]) -> Callable:
        """Call ``function(events)``, before the next event, if so many were missed: more happened
        while the connection was lost than the node keeps."""
        self._missed.append(function)
        return function

    def on_refused(self, function: Callable[[Refused], Any]) -> Callable:
        """Call ``function(refused)`` whenever a message of :meth:`send` was refused."""
        self._refused.append(function)
        return function

    def on_change(self, pattern: str, function: Callable) -> Callable:
        """Call ``function(path, old, new)`` whenever a place of the state changes.

        ``pattern`` is a path such as ``players.*.won``, with ``*`` for any one step and ``**`` at
        the end for any rest. ``path`` is a tuple; ``old`` or ``new`` is ``None`` where there is
        no value.
        """
        self._changes.append((pattern.split("."), function))
        if self.left is None:
            self._client._core.watch(self._number)
        return function

    async def request(self, message: Any, fields: Any = None, *, reply: type | None = None) -> Any:
        """Send a message and return the room's reply.

        ``request("Play", {"place": 2})`` names the message; ``request(Play(place=2))`` takes the
        name and the fields of a dataclass. ``reply`` is a dataclass to make of the reply.

        Raises :class:`SchemaError` before anything is sent if the room has no such message, or a
        field is wrong, and :class:`Refused`.
        """
        name, payload = _named(message, fields)
        await self._client._ready()
        core = self._client._core
        answer = await self._client._ask(core.request(self._current(), name, payload))
        return answer if reply is None else _made(reply, answer)

    async def send(self, message: Any, fields: Any = None) -> None:
        """Send a message that needs no reply. Its arguments are those of :meth:`request`. It waits
        while too much is unsent or unconfirmed."""
        name, payload = _named(message, fields)
        await self._client._ready()
        self._client._core.send(self._current(), name, payload)
        await self._client._flush()

    async def changed(self) -> None:
        """Wait for the next sync that changes the state. Raises :class:`Refused` if this client is
        no longer in the room."""
        self._current()
        future = self._client._loop.create_future()
        self._waiters.append(future)
        await future

    async def until(self, condition: Callable[[View], Any]) -> Any:
        """Wait until ``condition(state)`` is true, and return what it returned."""
        while not (result := condition(self.state)):
            await self.changed()
        return result

    async def leave(self) -> None:
        """Leave the room."""
        if self.left is None:
            await self._client._ask(self._client._core.leave(self._number))

    def _current(self) -> int:
        if self.left is not None:
            raise self.left
        return self._number

    def _update(self, version: int, changes: list) -> None:
        self.version = version
        if not self._has_state.done():
            self._has_state.set_result(None)
        waiters, self._waiters = self._waiters, []
        for future in waiters:
            if not future.done():
                future.set_result(None)
        for path, _, old, new in changes:
            for pattern, function in self._changes:
                if matches(pattern, path):
                    values = [None if text is None else json.loads(text) for text in (old, new)]
                    call(function, tuple(path), *values)

    def _listen(self) -> None:
        """Someone listens: what came before follows, when others have had time to begin, too."""
        if self._early is not None:
            self._client._loop.call_soon(self._release)

    def _release(self) -> None:
        early, self._early = self._early, None
        for name, value in early or ():
            self._deliver(name, value)

    def _event(self, name: str, payload: bytes) -> None:
        if self._early is None:
            self._deliver(name, load(payload))
        else:
            self._early.append((name, load(payload)))

    def _deliver(self, name: str, value: Any) -> None:
        for function in self._events.get(name, ()):
            call(function, value)
        for function in self._events.get(None, ()):
            call(function, name, value)
        for feed in self._feeds:
            feed.put((name, value))

    def _end(self, why: Refused) -> None:
        self.state  # The last copy stays.
        self.left = why
        if self._feeds or self._events:
            self._release()
        for future in [*self._waiters, self._has_state]:
            if not future.done():
                future.set_exception(why)
                future.exception()
        for feed in self._feeds:
            feed.end(why)

    def __repr__(self) -> str:
        return f"<Room {self.type} {self.id} {self.state!r}>"


def _named(message: Any, fields: Any) -> tuple[str, bytes]:
    """The name of a message, and its JSON."""
    if isinstance(message, str):
        return message, dump(fields)
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        if fields is not None:
            raise TypeError("a dataclass is the whole message; it takes no fields beside it")
        return type(message).__name__, dump(message)
    raise TypeError(f"a message is a name and its fields, or a dataclass, not {message!r}")


def _made(kind: type, value: Any) -> Any:
    if isinstance(value, dict) and dataclasses.is_dataclass(kind):
        known = {field.name for field in dataclasses.fields(kind)}
        return kind(**{name: part for name, part in value.items() if name in known})
    return kind(value)

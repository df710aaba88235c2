"""A client for the rooms, channels and devices of a Playfield node, for asyncio."""

from __future__ import annotations

import asyncio
import ssl as _ssl
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from typing import Any, List, TypeVar

from . import _playfield, status
from ._callbacks import plain_function, without
from ._errors import ConnectionFailed, PlayfieldError, Refused, SchemaError, SessionEnded, closed
from ._feed import Feed
from ._limit import within
from ._shape import Shape, state_shape
from ._token import Token, given_token, token_bytes
from ._values import call, dump, load, log, payload, same_kind
from .channels import (
    History,
    Member,
    Members,
    Position,
    Presence,
    Publication,
    Subscription,
)
from .devices import Command, Device
from .room import OUTAGES_MAX, Room, RoomInfo

__all__ = ["Client", "connect"]

T = TypeVar("T")
R = TypeVar("R")

_BYTES = 64 << 10

# How long `close` waits for a lost connection with unconfirmed messages, and then for the node to
# have taken everything and answered, in seconds.
_FAREWELL = 5.0

# Ends of a stay that say nothing about this player, and refusals of a join that pass.
_OUTAGES = ("connection_lost", "shutting_down", "not_joined", "room_failed")
_PASSING = (*_OUTAGES, "limit", "too_fast", "busy", "timeout", "internal")


class Client:
    """A session with a node, made by :func:`connect`. It restores a lost connection by itself: what
    was sent is carried out once, and the rooms go on. Use it in its event loop only;
    ``playfield.sync`` has a client for blocking code. Its attributes:

    - ``session`` (``int``): the session's number; another one after ``"new_session"``.
    - ``status`` (``str``): ``"connected"``, ``"lost"`` while the connection is being restored, or
      ``"ended"``.
    - ``ended`` (``Exception | None``): why the session has ended; ``None`` while it lasts.
    """

    def __init__(
        self, url: str, name: str, token: bytes, ssl: Any, settings: dict[str, Any]
    ) -> None:
        self._loop = asyncio.get_running_loop()
        give = settings.pop("give_token")
        self._again: bool = settings.pop("again")
        self._backoff: tuple[float, float] = settings["backoff"]
        self._core = _playfield.Core(
            url, name, token, renews_token=give is not None, **settings
        )
        self._give_token = give
        self._token_timeout = settings["timeout"]
        self._ssl = ssl
        self._writer: asyncio.StreamWriter | None = None
        self._asked: dict[int | None, asyncio.Future[Any]] = {}
        self._rooms: dict[int, Room] = {}
        # Rooms that are joined again, by the request that does it once it is sent.
        self._away: dict[Room, int | None] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._device: Device | None = None
        self._registering: dict[int, Device] = {}
        self._pings: dict[int, asyncio.Future[Any]] = {}
        self._schemas: dict[str, asyncio.Future[Any]] = {}
        # The names of the events, and the types of the states, by room type, as far as the schemas
        # are known.
        self._event_names: dict[str, list[str]] = {}
        self._shapes: dict[str, Shape] = {}
        # Whether payloads are bytes, by channel, as far as the node has said so.
        self._kinds: dict[str, bool] = {}
        self._histories: dict[int, str] = {}
        self._fleet_has_bytes: bool | None = None
        self._spawned: set[asyncio.Task[Any]] = set()
        # It reads, and restores lost connections.
        self._task: asyncio.Task[None]
        self._timer: asyncio.TimerHandle | None = None
        self._welcome: asyncio.Future[Any] = self._loop.create_future()
        self._error: Exception | None = None
        self._waiting: list[asyncio.Future[Any]] = []
        self._reads: dict[int | None, Callable[[bytes], Any]] = {}
        self._lost_at = 0.0
        self._unconfirmed = 0
        self._feeds: list[Feed] = []
        self._refused: list[Callable[..., Any]] = []
        self.session = 0
        self.status = "connected"
        self.ended: Exception | None = None
        self._on_statuses: list[Callable[[str], Any]] = []

    def on_status(self, function: Callable[[str], R]) -> Callable[[str], R]:
        """Call ``function(status)`` whenever the status changes: with ``"lost"``; with
        ``"resumed"`` once the session goes on over another connection, or ``"new_session"`` if the
        node has not kept it, so that the rooms are to be joined again; with ``"weak"`` when a room
        with ticks, and all else, was not heard for about a second, and ``"back"`` when it is heard
        again; and with ``"ended"``."""
        self._on_statuses.append(plain_function(function, "the function given to on_status"))
        return function

    def events(self) -> Feed:
        """What happens to the connection from now on, with details: ``async for event in
        client.events()``, where an event is a :class:`playfield.status.Lost`, ``AttemptFailed``,
        ``Resumed``, ``NewSession``, ``Weak``, ``Back`` or ``Ended``. It ends after the last one."""
        feed = Feed()
        if self.status == "ended":
            feed.end()
        else:
            self._feeds.append(feed)
        return feed

    async def wait_for(self, status: str) -> None:
        """Wait until :attr:`status` is ``"connected"``, ``"lost"`` or ``"ended"``; or until the next
        ``"resumed"``, ``"new_session"``, ``"weak"`` or ``"back"``. Raises what has ended the session, unless it waits for
        that."""
        known = ("connected", "lost", "ended", "resumed", "new_session", "weak", "back")
        if status not in known:
            raise ValueError(f"there is no status {status!r}")
        if status == self.status:
            return
        heard = self._loop.create_future()

        def hear(news: str) -> None:
            if not heard.done() and (news in (status, "ended") or status == self.status):
                heard.set_result(None)

        self._on_statuses.append(hear)
        try:
            if self.status != "ended":
                await heard
        finally:
            self._on_statuses.remove(hear)
        if self.status == "ended" != status:
            raise (self.ended or closed()).with_traceback(None)

    def on_refused(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(refused)`` whenever the node has refused what has no answer and is about
        no room: :meth:`publish_unconfirmed` and :meth:`Device.report_unconfirmed`."""
        self._refused.append(plain_function(function, "the function given to on_refused"))
        return function

    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more: it was given to :meth:`on_status` or :meth:`on_refused`. Does
        nothing if it was not."""
        self._on_statuses = without(self._on_statuses, function)
        self._refused = without(self._refused, function)

    async def join_or_create(
        self, room_type: str, options: Any = None, *, key: str | None = None
    ) -> Room:
        """Enter any room of a type that is not full, or the one with this key, or create it.

        ``options`` are a dict or a dataclass. Raises :class:`SchemaError` before anything is sent
        if they do not match the node's schema, and :class:`Refused`."""
        data = await self._options(room_type, options)
        return await self._enter(lambda core: core.join_or_create(room_type, key, data))

    async def create(
        self,
        room_type: str,
        options: Any = None,
        *,
        key: str | None = None,
        private: bool = False,
        code: bool = False,
    ) -> Room:
        """Create a room and enter it. With ``code``, the node picks a short key. A ``private`` room
        is in no list."""
        data = await self._options(room_type, options)

        def again(core: _playfield.Core, key: str | None) -> int:
            if key is None:
                return core.create(room_type, private, code, key, data)
            return core.join_or_create(room_type, key, data)

        return await self._enter(
            lambda core: core.create(room_type, private, code, key, data), again
        )

    async def join(self, room_id: str) -> Room:
        """Enter the room with this id, or use a reservation."""
        return await self._enter(lambda core: core.join(room_id), _no_other)

    async def join_by_key(self, room_type: str, key: str) -> Room:
        """Enter the room of a type that has this key."""
        return await self._enter(lambda core: core.join_by_key(room_type, key))

    async def list(
        self, room_type: str | None = None, *, limit: int = 0, **metadata: str
    ) -> List[RoomInfo]:
        """The rooms of one type or of all, those with this metadata, and at most ``limit``; 0 means
        the node's limit."""
        pairs = [(name, str(value)) for name, value in metadata.items()]
        rooms: List[RoomInfo] = await self._ask(self._live().list(room_type, pairs, limit))
        return rooms

    async def schema(self, room_type: str) -> dict[str, Any]:
        """Ask for the schema of a type of rooms, as ``docs/state.md`` has it."""
        schema: dict[str, Any] = load(await self._ask(self._live().schema(room_type)))
        self._know(room_type, schema)
        return schema

    async def subscribe(
        self, channel: str, *, since: Position | None = None, presence: bool = False
    ) -> Subscription:
        """Subscribe to a channel: to what is published from now on, or after ``since``, as far as
        the channel's history has it. After a lost connection it goes on where it was.

        Raises :class:`Refused`."""
        number = self._live().subscribe(channel, since, presence)
        subscription = Subscription(self, number, channel, since)
        self._subscriptions[number] = subscription
        try:
            await self._flush()
            await subscription._begun
        except asyncio.CancelledError:
            if self._subscriptions.pop(number, None) is not None:
                self._core.unsubscribe(number)
                self._write()
            raise
        return subscription

    async def publish(self, channel: str, message: Any) -> int:
        """Publish a JSON value or ``bytes``, as the channel's rule says. Returns its offset.

        Raises :class:`SchemaError` before anything is sent if the channel is known to hold the
        other kind. Before the first ``bytes`` in a channel that this client does not subscribe to,
        it asks the node for the kind. Raises :class:`Refused`."""
        data = await self._publication(channel, message)
        offset: int = await self._ask(self._live().publish(channel, data, True))
        return offset

    async def publish_unconfirmed(self, channel: str, message: Any) -> None:
        """Publish without waiting for the node's answer; it waits while too much is unconfirmed.
        Raises :class:`SchemaError` as :meth:`publish` does."""
        data = await self._publication(channel, message)
        self._live().publish(channel, data, False)
        await self._flush()

    async def _publication(self, channel: str, message: Any) -> bytes:
        """A payload, of the kind that the channel has."""
        data, is_bytes = payload(message)
        if is_bytes and channel not in self._kinds:
            try:
                await self.history(channel, limit=1)
            except Refused as refused:
                if refused.code != "forbidden":
                    raise
                raise SchemaError(
                    f"whether {channel} takes bytes is unknown, as this session may not read it: "
                    "publish their base64 as a str, which is the same in a channel of bytes"
                ) from None
        same_kind(f"the channel {channel}", self._kinds.get(channel), is_bytes)
        await self._ready()
        return data

    def _report(self, value: Any) -> bytes:
        """A report or an answer of the device, of the kind that the fleet has."""
        if value is None and self._fleet_has_bytes:
            value = b""
        data, is_bytes = payload(value)
        same_kind("the fleet", self._fleet_has_bytes, is_bytes)
        return data

    async def members(self, channel: str) -> Members:
        """Ask who subscribes to a channel."""
        members: Members = await self._ask(self._live().members(channel))
        return members

    async def history(
        self, channel: str, *, since: Position | None = None, limit: int = 0
    ) -> History:
        """Ask for publications of a channel after ``since``; ``limit`` 0 means the node's limit."""
        request = self._live().history(channel, since, limit)
        self._histories[request] = channel
        try:
            history: History = await self._ask(request)
            return history
        finally:
            self._histories.pop(request, None)

    async def register(
        self,
        device: str,
        *,
        metadata: Mapping[str, str] | None = None,
        tags: Iterable[str] = (),
    ) -> Device:
        """Register this session as a device, under an id by which the fleet finds it. In a new
        session the client registers again by itself."""
        pairs = [(name, str(value)) for name, value in (metadata or {}).items()]
        request = self._live().register(device, pairs, list(tags))
        self._registering[request] = Device(self, device)
        try:
            registered: Device = await self._ask(request)
            return registered
        finally:
            self._registering.pop(request, None)

    async def ping(self) -> float:
        """Measure the round trip to the node, in seconds."""
        future: asyncio.Future[float] = self._loop.create_future()
        self._pings[self._live().ping()] = future
        await self._flush()
        return await future

    async def close(self) -> None:
        """Say goodbye once everything that was sent is written, and end the session. It waits at
        most 5 seconds for the node's answer, which says that the node has taken all of it. If the
        connection is lost, it waits only if a :meth:`Room.send` or the like is unconfirmed."""
        try:
            if not self._core.is_finished:
                await within(_FAREWELL, self._farewell())
        except TimeoutError:
            log.debug("the node has not answered the goodbye in %s s", _FAREWELL)
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            if self._writer is not None:
                # All is sent and read by now. TLS would wait for the node's end of it.
                self._writer.transport.abort()
                await asyncio.sleep(0)

    async def _farewell(self) -> None:
        is_welcome = self._welcome.done()
        while is_welcome and self.status == "lost" and self._core.unconfirmed_sends > 0:
            await self._news()
        is_lost = self.status == "lost"
        self._core.goodbye()
        self._write()
        if is_welcome and not is_lost:
            # The task reads until the node, which then has taken and confirmed everything, ends the
            # stream. To close it with something unread would reset it, and the node would lose what
            # it has not read yet.
            await asyncio.wait({self._task})

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _enter(
        self,
        ask: Callable[[_playfield.Core], int],
        again: Callable[[_playfield.Core, str | None], int] | None = None,
    ) -> Room:
        """Joins a room. ``again`` joins or makes one like it, once that one is gone."""
        room = await self._seat(ask(self._live()))
        if self._again:
            room._again = again or (lambda core, key: ask(core))
        room._joined()
        return room

    async def _seat(self, request: int) -> Room:
        answer = self._expect(request)
        try:
            await self._flush()
            room: Room = await answer
            await room._has_state
        except asyncio.CancelledError:
            if not answer.cancel() and not answer.cancelled() and answer.exception() is None:
                self._abandon(answer.result())
            raise
        return room

    def _gone(self, room: Room, why: Refused, last: Any = None) -> None:
        """A stay has ended: for good, unless the room is joined again."""
        if room._away(why, last, self.ended is None and why.code in _OUTAGES):
            self._away[room] = None
            room._joining = self._loop.create_task(self._join_again(room, why))

    async def _join_again(self, room: Room, why: Refused) -> None:
        """Joins the same room, or if that is gone, one as asked for at first."""
        is_there = True
        try:
            while why.code in _PASSING and room._outages < OUTAGES_MAX:
                await asyncio.sleep(room._wait(self._backoff) + (why.retry_after or 0.0))
                try:
                    if not is_there:
                        await self._learn(room.type)
                    core = self._live()
                    request = core.join(room.id) if is_there else room._again(core, room.key)
                    self._away[room] = request
                    await self._seat(request)
                    del self._away[room]
                    return room._joined()
                except Refused as refused:
                    why = refused
                    if is_there and why.code == "room_not_found" and room._again is not _no_other:
                        is_there, why = False, Refused("not_joined", why.text)
            room._end(why)
        except PlayfieldError as error:
            room._end(Refused(error.code or "connection_lost", str(error)))

    def _abandon(self, room: Room) -> None:
        """Leaves a room that the program never gets."""
        if room.left is None and self.ended is None:
            try:
                self._core.leave(room._number)
            except PlayfieldError as error:
                log.debug("could not leave %s: %s", room.id, error)
            self._write()

    async def _options(self, room_type: str, options: Any) -> bytes:
        if options is not None:
            await self._learn(room_type)
        return dump(options, b"")

    async def _learn(self, room_type: str) -> None:
        """Asks for the schema of a type of rooms, unless it is known. Without it, messages are
        checked by the node only."""
        if not self._core.knows_schema(room_type) and not self._core.is_finished:
            self._ask_schema(room_type)
            if room_type in self._schemas:
                await asyncio.shield(self._schemas[room_type])

    def _ask_schema(self, room_type: str) -> None:
        if room_type in self._schemas:
            return
        try:
            request = self._core.schema(room_type)
        except (PlayfieldError, RuntimeError) as error:
            log.debug("no schema of %s: %s", room_type, error)
            return
        answer = self._asked[request] = self._loop.create_future()
        answer.add_done_callback(lambda answer: self._learned(room_type, answer))
        self._schemas[room_type] = self._loop.create_future()
        self._write()

    def _learned(self, room_type: str, answer: asyncio.Future[Any]) -> None:
        if not answer.cancelled():
            if answer.exception() is not None:
                log.debug("no schema of %s: %s", room_type, answer.exception())
            else:
                self._know(room_type, load(answer.result()))
        future = self._schemas.pop(room_type)
        if not future.done():
            future.set_result(None)

    def _know(self, room_type: str, schema: dict[str, Any]) -> None:
        self._event_names[room_type] = [event["name"] for event in schema.get("events", ())]
        try:
            self._shapes[room_type] = state_shape(schema)
        except (KeyError, TypeError) as error:
            log.debug("the schema of %s was not understood: %r", room_type, error)

    def _spawn(self, coroutine: Any) -> None:
        task = self._loop.create_task(coroutine)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    async def _ask(self, request: int | None, read: Callable[[bytes], Any] | None = None) -> Any:
        answer = self._expect(request, read)
        await self._flush()
        return await answer

    def _expect(
        self, request: int | None, read: Callable[[bytes], Any] | None = None
    ) -> asyncio.Future[Any]:
        answer = self._asked[request] = self._loop.create_future()
        if read is not None:
            self._reads[request] = read
        return answer

    def __repr__(self) -> str:
        return f"<Client session {self.session}, {self.status}>"

    # The connection.

    async def _open(self) -> asyncio.StreamReader:
        host, port, secure = self._core.address
        context = (self._ssl or True) if secure else None
        reader, self._writer = await asyncio.open_connection(host, int(port), ssl=context)
        return reader

    def _drop(self, _: asyncio.StreamReader) -> None:
        if self._writer is not None:
            self._writer.transport.abort()

    async def _run(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                await self._serve(reader)
                if not self._core.is_away:
                    break
                restored = await self._restore()
                if restored is None:
                    break
                reader = restored
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._writer is not None:
                self._writer.close()
            self._take(self._core.give_up())
            self._end(closed())

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        """Reads until the connection or the session ends."""
        self._advance()
        while not self._core.is_finished and not self._core.is_away:
            try:
                data = await reader.read(_BYTES)
            except OSError:
                data = b""
            self._take(self._core.advance(time.monotonic()))
            self._take(self._core.received(data) if data else self._core.ended())
            self._write()
            if not data:
                return

    async def _restore(self) -> asyncio.StreamReader | None:
        """Connects again, as often as it takes."""
        if self._writer is not None:
            self._writer.transport.abort()
        core, late = self._core, "the node did not answer"
        while True:
            step, limit, events = core.step(time.monotonic())
            self._take(events)
            if core.is_finished:
                return None
            if step == "wait":
                await asyncio.sleep(max(0.0, (core.due_at or 0.0) - time.monotonic()))
                continue
            try:
                if step == "token":
                    core.set_token(await given_token(self._give_token, self._token_timeout))
                    continue
                reader = await _in_time(self._open(), limit, late, self._drop)
            except Exception as error:
                self._attempt_failed(error, core.attempt_failed(time.monotonic()))
            else:
                core.reconnect()
                return reader

    def _on_attempt_failed(self, text: str, is_last: bool) -> None:
        self._attempt_failed(ConnectionError(text), is_last)

    def _attempt_failed(self, error: Exception, is_last: bool) -> None:
        log.debug("could not connect again: %s", error)
        if is_last:
            took = self._core.tried
            text = f"the connection could not be restored in {took:.0f} s: {error}"
            self._error = SessionEnded(text, "connection_lost")
        else:
            self._tell(status.AttemptFailed(error))

    def _advance(self) -> None:
        self._timer = None
        if self._core.is_finished or self._core.is_away:
            return
        self._take(self._core.advance(time.monotonic()))
        self._write()
        if self._core.is_away and self._writer is not None:
            self._writer.transport.abort()

    def _write(self) -> None:
        if self._writer is not None and not self._core.is_away:
            data = self._core.take_output()
            if data and not self._writer.is_closing():
                self._writer.write(data)
        due = self._core.due_at
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due is not None:
            self._timer = self._loop.call_later(max(0.0, due - time.monotonic()), self._advance)

    async def _news(self) -> None:
        """Waits until something was received, or the connection's state has changed."""
        future = self._loop.create_future()
        self._waiting.append(future)
        await future

    def _live(self) -> _playfield.Core:
        """The core, unless the session has ended."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        return self._core

    async def _ready(self) -> None:
        """Waits while too much is unconfirmed."""
        while self._core.is_full and not self._core.is_finished:
            await self._news()

    async def _flush(self) -> None:
        if self._core.is_finished:
            raise (self.ended or self._error or closed()).with_traceback(None)
        self._write()
        if self._writer is not None and not self._core.is_away:
            try:
                await self._writer.drain()
            except OSError:
                pass  # The reader finds it too, and connects again.

    # What happens.

    def _take(self, events: List[tuple[Any, ...]]) -> None:
        for name, *rest in events:
            getattr(self, "_on_" + name)(*rest)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _status(self, name: str, event: Any) -> None:
        self.status = name if name in ("lost", "ended") else "connected"
        self._tell(event)
        # It may have been assigned instead.
        assigned = self.__dict__.get("on_status")
        for function in [*self._on_statuses, *([assigned] if assigned else [])]:
            call(function, name)

    def _tell(self, event: Any) -> None:
        for feed in self._feeds:
            feed.put(event)

    def _answer(self, request: int | None, value: Any) -> None:
        future = self._asked.pop(request, None)
        if future is None or future.done():
            return
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)

    def _on_welcome(self, session: int) -> None:
        self.session = session
        if not self._welcome.done():
            self._welcome.set_result(None)

    def _on_lost(self, code: str, why: str) -> None:
        log.debug("the connection was lost: %s", why)
        # An error that announced a goodbye was not followed by one.
        self._error = None
        self._lost_at = time.monotonic()
        if self._writer is not None:
            self._writer.transport.abort()
        self._status("lost", status.Lost(SessionEnded(why, code)))

    def _on_resumed(self, lost: List[Any]) -> None:
        forgotten = [(self._rooms.get(number), messages) for number, messages in lost]
        away = time.monotonic() - self._lost_at
        self._status("resumed", status.Resumed(away, forgotten))

    def _on_weak(self, is_weak: bool) -> None:
        name, event = ("weak", status.Weak()) if is_weak else ("back", status.Back())
        self._status(name, event)

    def _on_new_session(self, session: int, last: dict[int, Any]) -> None:
        self.session = session
        why = "the node no longer had the session; join the room again"
        rooms, self._rooms = self._rooms, {}
        for number, room in rooms.items():
            self._gone(room, Refused("connection_lost", why), last.get(number))
        self._kinds.clear()
        unconfirmed, self._unconfirmed = self._unconfirmed, 0
        away = time.monotonic() - self._lost_at
        self._status("new_session", status.NewSession(away, unconfirmed))

    def _on_joined(
        self,
        request: int,
        number: int,
        room_id: str,
        room_type: str,
        key: str | None,
        player: int,
    ) -> None:
        room = next((one for one, of in self._away.items() if of == request), None)
        if room is None:
            room = Room(self, number, room_id, room_type, key, player)
        else:
            room._begin(number, room_id, key, player)
        self._rooms[number] = room
        future = self._asked.get(request)
        if future is None or future.done():
            # Whoever asked was canceled.
            self._asked.pop(request, None)
            self._core.leave(number)
            return
        self._answer(request, room)

    def _on_left(
        self, number: int, request: int | None, code: str, text: str, last: Any
    ) -> None:
        room = self._rooms.pop(number, None)
        if room is not None:
            self._gone(room, Refused(code, text or "this client is no longer in the room"), last)
        if request is not None:
            self._answer(request, None)

    def _on_entered(self, number: int, schema: bytes | None) -> None:
        """The copy and the schema of a room are there."""
        room = self._rooms.get(number)
        if room is not None:
            if schema is not None:
                self._know(room.type, load(schema))
            room._schema, room._read_version = self._core.schema_of(number), -1

    def _on_unusable(self, number: int, text: str) -> None:
        """There is no copy to go on with: the core leaves the room."""
        room = self._rooms.pop(number, None)
        if room is not None:
            room._end(Refused("bad_message", f"this client leaves the room: {text}"))

    def _on_reply(self, request: int, is_bytes: bool, data: bytes) -> None:
        read = self._reads.pop(request, None)
        try:
            value = load(data, is_bytes) if read is None else read(data)
        except ValueError as error:
            value = error
        self._answer(request, value)

    def _on_failed(self, request: int, code: str, text: str, retry_after: float | None) -> None:
        self._reads.pop(request, None)
        self._answer(request, Refused(code, text, retry_after))

    def _on_mismatch(self, request: int, text: str) -> None:
        self._answer(request, SchemaError(text))

    def _on_listed(self, request: int, rooms: List[Any]) -> None:
        self._answer(request, [RoomInfo._make([*room[:6], dict(room[6])]) for room in rooms])

    def _on_schema(self, request: int | None, wrong: str | None, data: bytes) -> None:
        if request is not None:
            self._answer(request, data if wrong is None else ValueError(wrong))

    def _on_subscribed(
        self,
        number: int,
        position: tuple[int, int],
        recovered: bool,
        missed: int,
        members: int,
        has_bytes: bool,
    ) -> None:
        if number in self._subscriptions:
            subscription = self._subscriptions[number]
            self._kinds[subscription.channel] = has_bytes
            subscription._subscribed(Position(*position), recovered, missed, members)

    def _on_unsubscribed(self, number: int, code: str, text: str) -> None:
        subscription = self._subscriptions.pop(number, None)
        if subscription is not None:
            subscription._end(Refused(code, text))

    def _on_publication(
        self, number: int, offset: int, user: str | None, is_bytes: bool, data: bytes
    ) -> None:
        if number in self._subscriptions:
            publication = Publication(offset, user, load(data, is_bytes))
            self._subscriptions[number]._published(publication)

    def _on_publications_missed(self, number: int, publications: int) -> None:
        if number in self._subscriptions:
            self._subscriptions[number]._missed(publications)

    def _on_presence(
        self,
        number: int,
        sequence: int,
        joined: bool,
        session: int,
        user: str | None,
        name: str,
    ) -> None:
        if number in self._subscriptions:
            presence = Presence(sequence, joined, Member(session, user, name))
            self._subscriptions[number]._present(presence)

    def _on_published(self, request: int, offset: int) -> None:
        self._answer(request, offset)

    def _on_members(self, request: int, sequence: int, count: int, members: List[Any]) -> None:
        self._answer(request, Members(sequence, count, [Member(*member) for member in members]))

    def _on_history(
        self, request: int, last: tuple[int, int], has_bytes: bool, publications: List[Any]
    ) -> None:
        if request in self._histories:
            self._kinds[self._histories[request]] = has_bytes
        past = [
            Publication(offset, user, load(data, is_bytes))
            for offset, user, is_bytes, data in publications
        ]
        self._answer(request, History(Position(*last), past))

    def _on_registered(self, request: int | None, is_new: bool, has_bytes: bool) -> None:
        self._fleet_has_bytes = has_bytes
        device = self._registering.pop(request, None) if request is not None else None
        if device is not None:
            if self._device is not None:
                self._device._end(None)
            device.is_new = is_new
            self._device = device
            self._answer(request, device)

    def _on_unregistered(self, code: str, text: str) -> None:
        device, self._device = self._device, None
        if device is not None:
            device._end(Refused(code, text))

    def _on_command(self, number: int | None, is_bytes: bool, data: bytes) -> None:
        command = Command(self, number, load(data, is_bytes))
        if self._device is not None:
            self._device._command(command)
        else:
            command._answer(None, "the device is no longer registered")

    def _on_unconfirmed(self, sends: int) -> None:
        log.debug("it is unknown whether %d messages were carried out", sends)
        self._unconfirmed += sends

    def _on_pong(self, nonce: int, round_trip: float) -> None:
        future = self._pings.pop(nonce, None)
        if future is not None and not future.done():
            future.set_result(round_trip)

    def _on_event(self, number: int, name: str, payload: bytes) -> None:
        if number in self._rooms:
            self._rooms[number]._event(name, payload)

    def _on_missed(self, number: int, events: int) -> None:
        log.debug("%d events of room %d were missed", events, number)
        if number in self._rooms:
            for function in self._rooms[number]._missed:
                call(function, events)

    def _on_state(self, number: int, version: int, changes: List[Any]) -> None:
        if number in self._rooms:
            self._rooms[number]._update(version, changes)

    def _on_error(self, number: int | None, code: str, text: str) -> None:
        log.debug("%s (%s)", text, code)
        refused = Refused(code, text)
        if number in self._rooms:
            for function in self._rooms[number]._refused:
                call(function, refused)
        elif number is None and self.status == "connected":
            for function in self._refused:
                call(function, refused)

    def _on_goodbye(self, code: str, text: str) -> None:
        self._error = Refused(code, text)

    def _on_closed(self, why: str | None) -> None:
        self._end(self._error or (SessionEnded(why, "connection_lost") if why else closed()))

    def _end(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        if self.ended is None:
            self.ended = error
        code = getattr(error, "code", None) or "connection_lost"
        rooms, self._rooms = [*self._rooms.values(), *self._away], {}
        for room in rooms:
            room._end(Refused(code, getattr(error, "text", str(error))))
        for subscription in self._subscriptions.values():
            subscription._end(error)
        self._subscriptions.clear()
        if self._device is not None:
            self._device._end(error)
        asked, self._asked = self._asked, {}
        pings, self._pings = self._pings, {}
        for future in [*asked.values(), *pings.values(), self._welcome]:
            if not future.done():
                future.set_exception(error)
                future.exception()
        if self.status != "ended" and self._welcome.exception() is None:
            self._status("ended", status.Ended(error, self._unconfirmed))
        for feed in self._feeds:
            feed.end()


def _no_other(_: _playfield.Core, __: str | None) -> int:
    """A room that was joined by its id has no other like it."""
    raise NotImplementedError


async def _in_time(
    doing: Awaitable[T], limit: float, what: str, drop: Callable[[T], Any] = lambda result: None
) -> T:
    try:
        return await within(None if limit == float("inf") else limit, doing, drop)
    except TimeoutError:
        raise TimeoutError(f"{what} in {limit:g} s") from None


class connect:
    """Connect to a node: ``tcp://``, ``tls://``, ``ws://`` or ``wss://``.

    ``await connect(url)`` returns a :class:`Client`; ``async with connect(url) as client`` closes
    it at the end. Times are in seconds.

    - ``name``: the player's display name.
    - ``token``: for the node's authenticator: ``str``, ``bytes``, or a function that returns one,
      which may be ``async``; a plain function is called in a thread. It is called for the first
      connection, and later only when the node has refused the token, or shortly before the
      ``exp`` of a JSON Web Token.
    - ``ssl``: an ``ssl.SSLContext`` for ``tls`` and ``wss``.
    - ``open_timeout`` (10): the limit of an attempt to connect, and of one to get a token.
    - ``reconnect_for`` (60): for how long to try to restore a lost connection. With 0 the session
      ends with the connection.
    - ``backoff`` (0.1, 5): the wait before the first attempt to restore it, which doubles with each
      attempt, and the longest. The client waits for a random part of it.
    - ``again`` (``False``): whether rooms are joined again by themselves when a stay has ended only
      because the session was lost, the server is restarted, or the room has failed: the same room,
      or if that is gone, one as asked for at first. :meth:`Room.on_status` says so.

    Raises ``OSError``, ``TimeoutError``, :class:`ConnectionFailed` if the server is not a node,
    :class:`Refused` if the node refuses the session, and what the function for the token raises.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str = "",
        token: Token = b"",
        ssl: _ssl.SSLContext | None = None,
        open_timeout: float | None = 10.0,
        reconnect_for: float = 60.0,
        backoff: tuple[float, float] = (0.1, 5.0),
        again: bool = False,
    ) -> None:
        self._url = url
        self._name = name
        self._token = token
        self._ssl = ssl
        self._timeout = float("inf") if open_timeout is None else open_timeout
        self._settings: dict[str, Any] = {
            "give_token": token if callable(token) else None,
            "reconnect_for": reconnect_for,
            "timeout": self._timeout,
            "backoff": tuple(backoff),
            "again": again,
        }

    async def _connect(self) -> Client:
        give, limit = self._settings["give_token"], self._timeout
        token = token_bytes(self._token) if give is None else await given_token(give, limit)
        client = Client(self._url, self._name, token, self._ssl, {**self._settings})
        late = f"{self._url} did not answer"
        try:
            reader = await _in_time(client._open(), limit, late, client._drop)
        except _ssl.SSLCertVerificationError:
            raise
        except (_ssl.SSLError, ConnectionResetError) as error:
            # Other errors of the system say what is wrong.
            has_ended = isinstance(error, (_ssl.SSLEOFError, ConnectionResetError))
            why = "the connection ended" if has_ended else str(error)
            raise self._failed(f"TLS failed: {why}", True) from error
        client._task = client._loop.create_task(client._run(reader))
        try:
            await _in_time(asyncio.shield(client._welcome), limit, late)
        except SessionEnded as ended:
            await client.close()
            raise self._failed(str(ended)) from None
        except BaseException:
            await client.close()
            raise
        return client

    def _failed(self, why: str, of_tls: bool = False) -> ConnectionFailed:
        text = f"{self._url} did not answer as a Playfield node does: {why}"
        scheme, rest = self._url.split("://", 1)
        if of_tls:
            text += f"; without TLS it is {'tcp' if scheme == 'tls' else 'ws'}://{rest}"
        elif scheme in ("tcp", "ws"):
            text += f"; with TLS it is {'tls' if scheme == 'tcp' else 'wss'}://{rest}"
        return ConnectionFailed(text)

    def __await__(self) -> Generator[Any, None, Client]:
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

"""A client for the rooms, channels and devices of a Playfield node, for asyncio."""

from __future__ import annotations

import asyncio
import copy
import ssl as _ssl
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from typing import Any, Generic, List, TypeVar

from . import _playfield, status
from ._callbacks import plain_function, without
from ._errors import ConnectionFailed, PlayfieldError, Refused, SchemaError, SessionEnded, closed
from ._feed import Feed
from ._limit import within
from ._link import Link, Socket, drop, in_time
from ._nodes import Nodes
from ._playfield import Event
from ._threads import in_loop
from ._token import Token, given_token, token_bytes
from ._values import call, dump, load, log, payload, same_kind
from .channels import (
    BaseSubscription,
    History,
    Member,
    Members,
    Position,
    Presence,
    Publication,
    Subscription,
)
from .devices import BaseCommand, BaseDevice, Device
from .room import OUTAGES_MAX, BaseRoom, Room, RoomInfo

__all__ = ["Client", "connect"]

R = TypeVar("R")
RoomT = TypeVar("RoomT", bound=BaseRoom)
SubscriptionT = TypeVar("SubscriptionT", bound=BaseSubscription)
DeviceT = TypeVar("DeviceT", bound=BaseDevice)

# How long `close` waits for a lost connection with unconfirmed messages, and then for the node to
# have taken everything and answered, in seconds.
_FAREWELL = 5.0

# Ends of a stay that say nothing about this player, and refusals of a join that pass.
_OUTAGES = ("connection_lost", "shutting_down", "not_joined", "room_failed")
_PASSING = (*_OUTAGES, "limit", "too_fast", "busy", "timeout", "internal", "unreachable")

C = TypeVar("C", bound="BaseClient[Any, Any, Any]")


class BaseClient(Link, Generic[RoomT, SubscriptionT, DeviceT]):
    """What clients have in common, however a program waits."""

    def __init__(
        self,
        settings: dict[str, Any],
        thread: Any,
        room: Callable[[Any], RoomT],
        subscription: Callable[..., SubscriptionT],
        device: Callable[[Any, str], DeviceT],
    ) -> None:
        settings = {**settings}
        give, self._again = settings.pop("give_token"), settings.pop("again")
        ssl = settings.pop("ssl")
        home, there = settings.pop("home"), settings.pop("there")
        core = _playfield.Core(**settings, renews_token=give is not None)
        _, timeout, self._backoff = settings["patience"]
        super().__init__(core, ssl, give, timeout)
        #: The client's first session, which is the program's, and those at other nodes.
        self._home: BaseClient[Any, Any, Any] = home or self
        self._nodes: Nodes = home._nodes if home else Nodes(self, there)
        #: The thread of the loop, if the program's is another.
        self._thread: Any = thread
        self._make_room, self._make_device = room, device
        self._make_subscription = subscription
        # What was asked for, with the functions that read the answers.
        self._asked: dict[int | None, asyncio.Future[Any]] = {}
        self._reads: dict[int | None, Callable[[bytes], Any]] = {}
        self._rooms: dict[int, RoomT] = {}
        # Rooms of the client that are joined again, and those that this session has asked for, by
        # the request.
        self._away: set[Any] = home._away if home else set()
        self._returning: dict[int, RoomT] = {}
        self._subscriptions: dict[int, SubscriptionT] = {}
        self._device: DeviceT | None = None
        self._registering: dict[int | None, DeviceT] = {}
        self._pings: dict[int, asyncio.Future[Any]] = {}
        # Whether payloads are bytes, by channel, as far as the node has said so.
        self._kinds: dict[str, bool] = {}
        self._histories: dict[int, str] = {}
        self._fleet_has_bytes: bool | None = None
        self._spawned: set[asyncio.Task[Any]] = set()
        self._welcome: asyncio.Future[Any] = self._loop.create_future()
        self._lost_at = 0.0
        self._unconfirmed = 0
        self._feeds: list[Feed] = []
        self._refused: list[Callable[..., Any]] = []
        self.session = 0
        self.status = "connected"
        self.ended: Exception | None = None
        self._on_statuses: list[Callable[[str], Any]] = []

    @in_loop
    def on_status(self, function: Callable[[str], R]) -> Callable[[str], R]:
        """Call ``function(status)`` whenever the status changes: with ``"lost"``; with
        ``"resumed"`` once the session goes on over another connection, or ``"new_session"`` if the
        node has not kept it, so that the rooms are to be joined again; with ``"weak"`` when a room
        with ticks, and all else, was not heard for about a second, and ``"back"`` when it is heard
        again; and with ``"ended"``."""
        self._on_statuses.append(plain_function(function, "the function given to on_status"))
        return function

    def _listened(self) -> Feed:
        feed = Feed()
        if self.status == "ended":
            feed.end()
        else:
            self._feeds.append(feed)
        return feed

    async def _wait_for(self, status: str) -> None:
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

    @in_loop
    def on_refused(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(refused)`` whenever the node has refused what has no answer and is about
        no room: :meth:`publish_unconfirmed` and :meth:`Device.report_unconfirmed`."""
        self._refused.append(plain_function(function, "the function given to on_refused"))
        return function

    @in_loop
    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more: it was given to :meth:`on_status` or :meth:`on_refused`. Does
        nothing if it was not."""
        self._on_statuses = without(self._on_statuses, function)
        self._refused = without(self._refused, function)

    async def _join_or_create(self, room_type: str, options: Any, key: str | None) -> RoomT:
        data = dump(options, b"")
        return await self._enter(lambda core: core.join_or_create(room_type, key, data))

    async def _create(
        self, room_type: str, options: Any, key: str | None, private: bool, code: bool
    ) -> RoomT:
        data = dump(options, b"")

        def again(core: _playfield.Core, key: str | None) -> int:
            if key is None:
                return core.create(room_type, private, code, key, data)
            return core.join_or_create(room_type, key, data)

        return await self._enter(
            lambda core: core.create(room_type, private, code, key, data), again
        )

    async def _join(self, room_id: str) -> RoomT:
        return await self._enter(lambda core: core.join(room_id), _no_other)

    async def _join_by_key(self, room_type: str, key: str) -> RoomT:
        return await self._enter(lambda core: core.join_by_key(room_type, key))

    async def _list(
        self, room_type: str | None, limit: int, metadata: Mapping[str, str]
    ) -> List[RoomInfo]:
        pairs = [(name, str(value)) for name, value in metadata.items()]
        rooms: List[RoomInfo] = await self._ask(self._live().list(room_type, pairs, limit))
        return rooms

    async def _subscribe(
        self, channel: str, since: Position | None, presence: bool
    ) -> SubscriptionT:
        number = self._live().subscribe(channel, since, presence)
        subscription = self._make_subscription(self, number, channel, since)
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

    async def _publish(self, channel: str, message: Any) -> int:
        data = await self._publication(channel, message)
        offset: int = await self._ask(self._live().publish(channel, data, True))
        return offset

    async def _publication(self, channel: str, message: Any) -> bytes:
        """A payload, of the kind that the channel has."""
        data, is_bytes = payload(message)
        if is_bytes and channel not in self._kinds:
            try:
                await self._history(channel, None, 1)
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

    def _fleet_payload(self, value: Any) -> bytes:
        """A report or an answer of the device, of the kind that the fleet has."""
        if value is None and self._fleet_has_bytes:
            value = b""
        data, is_bytes = payload(value)
        same_kind("the fleet", self._fleet_has_bytes, is_bytes)
        return data

    async def _members(self, channel: str) -> Members:
        members: Members = await self._ask(self._live().members(channel))
        return members

    async def _history(self, channel: str, since: Position | None, limit: int) -> History:
        request = self._live().history(channel, since, limit)
        self._histories[request] = channel
        try:
            history: History = await self._ask(request)
            return history
        finally:
            self._histories.pop(request, None)

    async def _register(
        self, device: str, metadata: Mapping[str, str] | None, tags: Iterable[str]
    ) -> DeviceT:
        pairs = [(name, str(value)) for name, value in (metadata or {}).items()]
        request = self._live().register(device, pairs, list(tags))
        self._registering[request] = self._make_device(self, device)
        try:
            registered: DeviceT = await self._ask(request)
            return registered
        finally:
            self._registering.pop(request, None)

    async def _close(self) -> None:
        others = self._nodes.take(self)
        await asyncio.gather(self._close_session(), *(node._close_session() for node in others))

    async def _close_session(self) -> None:
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
            # The task waits until the node, which then has taken and confirmed everything, ends the
            # stream. To close it with something unread would reset it, and the node would lose what
            # it has not read yet.
            await asyncio.wait({self._task})

    async def _enter(
        self,
        ask: Callable[[_playfield.Core], int],
        again: Callable[[_playfield.Core, str | None], int] | None = None,
    ) -> RoomT:
        """Joins a room. ``again`` joins or makes one like it, once that one is gone."""
        room: RoomT = await self._nodes.join(ask)
        if self._again:
            room._again = again or (lambda core, key: ask(core))
        room._joined()
        return room

    async def _seat(self, request: int, again: RoomT | None = None) -> Any:
        """Waits for a room, or the redirect to it. ``again`` is one that is joined again."""
        answer = self._expect(request)
        if again is not None:
            self._returning[request] = again
        try:
            # The core may have refused it already.
            self._turn()
            await self._flush()
            found = await answer
            if isinstance(found, BaseRoom):
                await found._has_state
        except asyncio.CancelledError:
            if not answer.cancel() and not answer.cancelled() and answer.exception() is None:
                self._abandon(answer.result())
            raise
        finally:
            self._returning.pop(request, None)
        return found

    def _gone(self, room: RoomT, why: Refused) -> None:
        """A stay has ended: for good, unless the room is joined again."""
        room._client = home = self._home
        if room._away(why, home.ended is None and why.code in _OUTAGES):
            self._away.add(room)
            room._joining = self._loop.create_task(home._join_again(room, why))

    async def _join_again(self, room: RoomT, why: Refused) -> None:
        """Joins the same room, or if that is gone, one as asked for at first."""
        is_there = True
        try:
            while why.code in _PASSING and room._outages < OUTAGES_MAX:
                await asyncio.sleep(room._delay(self._backoff) + (why.retry_after or 0.0))
                try:
                    await self._nodes.join(_same(room) if is_there else _other(room), room)
                    self._away.discard(room)
                    return room._joined()
                except Refused as refused:
                    why = refused
                    if is_there and why.code == "room_not_found" and room._again is not _no_other:
                        is_there, why = False, Refused("not_joined", why.text)
            room._end(why)
        except PlayfieldError as error:
            room._end(Refused(error.code or "connection_lost", str(error)))

    def _abandon(self, room: Any) -> None:
        """Leaves a room that the program never gets."""
        if isinstance(room, BaseRoom) and room.left is None and self.ended is None:
            try:
                self._core.leave(room._number)
            except PlayfieldError as error:
                log.debug("could not leave %s: %s", room.id, error)
            self._write()

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

    # What happens.

    def _live(self) -> _playfield.Core:
        """The core, unless the session has ended."""
        if self.ended is not None:
            raise self.ended.with_traceback(None)
        return self._core

    def _why_over(self) -> Exception | None:
        return self.ended or self._error

    def _handle(self, event: Any) -> None:
        match event:
            case Event.Update(room=number, version=version):
                if number in self._rooms:
                    self._rooms[number]._update(version)
            case Event.Emitted(room=number, number=message, payload=data):
                if number in self._rooms:
                    self._rooms[number]._event(message, data)
            case Event.Reply(request=request, payload=data):
                read = self._reads.pop(request, load)
                try:
                    value = read(data)
                except ValueError as error:
                    value = error
                self._answer(request, value)
            case Event.Failed(request=request, code=code, text=text, retry_after=retry_after):
                self._reads.pop(request, None)
                wrong = SchemaError(text) if code is None else Refused(code, text, retry_after)
                self._answer(request, wrong)
            case Event.Publication(subscription=number, offset=offset, user=user, payload=data):
                if number in self._subscriptions:
                    of = self._subscriptions[number]
                    value = load(data, self._kinds.get(of.channel, False))
                    of._published(Publication(offset, user, value))
            case Event.Command(number=number, payload=data):
                self._commanded(number, load(data, bool(self._fleet_has_bytes)))
            case Event.Joined():
                self._joined(event)
            case Event.Redirected(request=request):
                self._answer(request, event)
            case Event.Entered(room=number):
                if number in self._rooms:
                    self._rooms[number]._entered()
            case Event.Unusable(room=number, text=text):
                # The core leaves the room.
                room = self._rooms.pop(number, None)
                if room is not None:
                    room._end(Refused("bad_message", f"this client leaves the room: {text}"))
            case Event.Left(room=number, request=request, code=code, text=text):
                room = self._rooms.pop(number, None)
                if room is not None:
                    self._gone(room, Refused(code, text or "this client is no longer in the room"))
                if request is not None:
                    self._answer(request, None)
            case Event.Missed(room=number, events=events):
                log.debug("%d events of room %d were missed", events, number)
                if number in self._rooms:
                    call_all(self._rooms[number]._missed, events)
            case Event.Error(room=number, code=code, text=text):
                log.debug("%s (%s)", text, code)
                if number in self._rooms:
                    call_all(self._rooms[number]._refused, Refused(code, text))
                elif number is None and self.status == "connected":
                    call_all(self._refused, Refused(code, text))
            case Event.Listed(request=request, rooms=rooms):
                self._answer(request, [RoomInfo._make(room) for room in rooms])
            case Event.Schema(request=request, schema=schema):
                self._answer(request, schema)
            case Event.Subscribed(subscription=number):
                if number in self._subscriptions:
                    of = self._subscriptions[number]
                    self._kinds[of.channel] = event.has_bytes
                    position = Position(*event.position)
                    of._subscribed(position, event.recovered, event.missed, event.members)
            case Event.Unsubscribed(subscription=number, code=code, text=text):
                ended = self._subscriptions.pop(number, None)
                if ended is not None:
                    ended._end(Refused(code, text))
            case Event.PublicationsMissed(subscription=number, publications=publications):
                if number in self._subscriptions:
                    self._subscriptions[number]._missed(publications)
            case Event.Presence(subscription=number, member=member):
                if number in self._subscriptions:
                    presence = Presence(event.sequence, event.joined, Member(*member))
                    self._subscriptions[number]._present(presence)
            case Event.Published(request=request, offset=offset):
                self._answer(request, offset)
            case Event.Members(request=request, members=members):
                found = [Member(*member) for member in members]
                self._answer(request, Members(event.sequence, event.count, found))
            case Event.History(request=request, has_bytes=has_bytes, publications=publications):
                if request in self._histories:
                    self._kinds[self._histories[request]] = has_bytes
                past = [Publication(at, user, load(of, has_bytes)) for at, user, of in publications]
                self._answer(request, History(Position(*event.position), past))
            case Event.Registered(request=request, is_new=is_new, has_bytes=has_bytes):
                self._fleet_has_bytes = has_bytes
                self._registered(request, is_new)
            case Event.Unregistered(code=code, text=text):
                device, self._device = self._device, None
                if device is not None:
                    device._end(Refused(code, text))
            case Event.Pong(nonce=nonce, round_trip=round_trip):
                pong = self._pings.pop(nonce, None)
                if pong is not None and not pong.done():
                    pong.set_result(round_trip)
            case _:
                self._handle_status(event)

    def _handle_status(self, event: Any) -> None:
        """What happens to the connection and the session."""
        match event:
            case Event.Welcome(session=session):
                self.session = session
                if not self._welcome.done():
                    self._welcome.set_result(None)
            case Event.Lost(code=code, text=text):
                log.debug("the connection was lost: %s", text)
                # An error that announced a goodbye was not followed by one.
                self._error = None
                self._lost_at = time.monotonic()
                if self._writer is not None:
                    self._writer.transport.abort()
                self._status("lost", status.Lost(SessionEnded(text, code)))
            case Event.AttemptFailed(text=text, is_last=is_last):
                self._attempt_failed(ConnectionError(text), is_last)
            case Event.Resumed(lost=lost):
                forgotten: Any = [(of and self._rooms.get(of), messages) for of, messages in lost]
                away = time.monotonic() - self._lost_at
                self._status("resumed", status.Resumed(away, forgotten))
            case Event.Weak(is_weak=is_weak):
                weak = ("weak", status.Weak()) if is_weak else ("back", status.Back())
                self._status(*weak)
            case Event.NewSession(session=session):
                self._new_session(session)
            case Event.Unconfirmed(sends=sends):
                log.debug("it is unknown whether %d messages were carried out", sends)
                self._unconfirmed += sends
            case Event.Goodbye(code=code, text=text):
                self._error = Refused(code, text)
            case Event.Closed(text=text):
                ended = SessionEnded(text, "connection_lost") if text else closed()
                self._over(self._error or ended)

    def _attempt_failed(self, error: Exception, is_last: bool) -> None:
        log.debug("could not connect again: %s", error)
        if is_last:
            took = self._core.tried
            text = f"the connection could not be restored in {took:.0f} s: {error}"
            self._error = SessionEnded(text, "connection_lost")
        else:
            self._tell(status.AttemptFailed(error))

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

    def _new_session(self, session: int) -> None:
        self.session = session
        why = "the node no longer had the session; join the room again"
        rooms, self._rooms = self._rooms, {}
        for room in rooms.values():
            self._gone(room, Refused("connection_lost", why))
        self._kinds.clear()
        unconfirmed, self._unconfirmed = self._unconfirmed, 0
        away = time.monotonic() - self._lost_at
        self._status("new_session", status.NewSession(away, unconfirmed))

    def _joined(self, joined: Any) -> None:
        request, number = joined.request, joined.room
        room = self._returning.pop(request, None) or self._make_room(self)
        room._client = self
        room._begin(number, joined.info, joined.copy)
        self._rooms[number] = room
        future = self._asked.get(request)
        if future is None or future.done():
            # Whoever asked was canceled.
            self._asked.pop(request, None)
            self._core.leave(number)
            return
        self._answer(request, room)

    def _registered(self, request: int | None, is_new: bool) -> None:
        device = self._registering.pop(request, None)
        if device is not None:
            if self._device is not None:
                self._device._end(None)
            device.is_new = is_new
            self._device = device
            self._answer(request, device)

    def _commanded(self, number: int | None, value: Any) -> None:
        if self._device is not None:
            self._device._command(self._device._command_type(self, number, value))
        else:
            BaseCommand(self, number, value)._answer(None, "the device is no longer registered")

    def _over(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        if self.ended is None:
            self.ended = error
        code = getattr(error, "code", None) or "connection_lost"
        rooms, self._rooms = [*self._rooms.values()], {}
        for room in [*rooms, *(self._away if self._home is self else ())]:
            self._gone(room, Refused(code, getattr(error, "text", str(error))))
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
        self._nodes.over(self, error)

    def _turn(self) -> None:
        super()._turn()
        self._nodes.used(self)


class Client(BaseClient[Room, Subscription, Device]):
    """A session with a node, made by :func:`connect`. It restores a lost connection by itself: what
    was sent is carried out once, and the rooms go on. Use it in its event loop only;
    ``playfield.sync`` has a client for blocking code. Its attributes:

    - ``session`` (``int``): the session's number; another one after ``"new_session"``.
    - ``status`` (``str``): ``"connected"``, ``"lost"`` while the connection is being restored, or
      ``"ended"``.
    - ``ended`` (``Exception | None``): why the session has ended; ``None`` while it lasts.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings, None, Room, Subscription, Device)

    def events(self) -> Feed:
        """What happens to the connection from now on, with details: ``async for event in
        client.events()``, where an event is a :class:`playfield.status.Lost`, ``AttemptFailed``,
        ``Resumed``, ``NewSession``, ``Weak``, ``Back`` or ``Ended``. It ends after the last one."""
        return self._listened()

    async def wait_for(self, status: str) -> None:
        """Wait until :attr:`status` is ``"connected"``, ``"lost"`` or ``"ended"``; or until the next
        ``"resumed"``, ``"new_session"``, ``"weak"`` or ``"back"``. Raises what has ended the session, unless it waits for
        that."""
        await self._wait_for(status)

    async def join_or_create(
        self, room_type: str, options: Any = None, *, key: str | None = None
    ) -> Room:
        """Enter any room of a type that is not full, or the one with this key, or create it.

        ``options`` are a dict or a dataclass. Raises :class:`SchemaError` before anything is sent
        if they do not match the node's schema, and :class:`Refused`."""
        return await self._join_or_create(room_type, options, key)

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
        return await self._create(room_type, options, key, private, code)

    async def join(self, room_id: str) -> Room:
        """Enter the room with this id, or use a reservation."""
        return await self._join(room_id)

    async def join_by_key(self, room_type: str, key: str) -> Room:
        """Enter the room of a type that has this key."""
        return await self._join_by_key(room_type, key)

    async def list(
        self, room_type: str | None = None, *, limit: int = 0, **metadata: str
    ) -> List[RoomInfo]:
        """The rooms of one type or of all, those with this metadata, and at most ``limit``; 0 means
        the node's limit."""
        return await self._list(room_type, limit, metadata)

    async def schema(self, room_type: str) -> dict[str, Any]:
        """Ask for the schema of a type of rooms, as ``docs/state.md`` has it."""
        schema: dict[str, Any] = load(await self._ask(self._live().schema(room_type)))
        return schema

    async def subscribe(
        self, channel: str, *, since: Position | None = None, presence: bool = False
    ) -> Subscription:
        """Subscribe to a channel: to what is published from now on, or after ``since``, as far as
        the channel's history has it. After a lost connection it goes on where it was.

        Raises :class:`Refused`."""
        return await self._subscribe(channel, since, presence)

    async def publish(self, channel: str, message: Any) -> int:
        """Publish a JSON value or ``bytes``, as the channel's rule says. Returns its offset.

        Raises :class:`SchemaError` before anything is sent if the channel is known to hold the
        other kind. Before the first ``bytes`` in a channel that this client does not subscribe to,
        it asks the node for the kind. Raises :class:`Refused`."""
        return await self._publish(channel, message)

    async def publish_unconfirmed(self, channel: str, message: Any) -> None:
        """Publish without waiting for the node's answer; it waits while too much is unconfirmed.
        Raises :class:`SchemaError` as :meth:`publish` does."""
        data = await self._publication(channel, message)
        self._live().publish(channel, data, False)
        await self._flush()

    async def members(self, channel: str) -> Members:
        """Ask who subscribes to a channel."""
        return await self._members(channel)

    async def history(
        self, channel: str, *, since: Position | None = None, limit: int = 0
    ) -> History:
        """Ask for publications of a channel after ``since``; ``limit`` 0 means the node's limit."""
        return await self._history(channel, since, limit)

    async def register(
        self,
        device: str,
        *,
        metadata: Mapping[str, str] | None = None,
        tags: Iterable[str] = (),
    ) -> Device:
        """Register this session as a device, under an id by which the fleet finds it. In a new
        session the client registers again by itself. If its task is canceled, the session may be
        registered all the same, and commands are refused."""
        return await self._register(device, metadata, tags)

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
        await self._close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()


def call_all(functions: List[Callable[..., Any]], *arguments: Any) -> None:
    """Calls functions of the program."""
    for function in functions:
        call(function, *arguments)


def _same(room: BaseRoom) -> Callable[[_playfield.Core], int]:
    return lambda core: core.join(room.id)


def _other(room: BaseRoom) -> Callable[[_playfield.Core], int]:
    return lambda core: room._again(core, room.key)


def _no_other(_: _playfield.Core, __: str | None) -> int:
    """A room that was joined by its id has no other like it."""
    raise NotImplementedError


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
    - ``reconnect_timeout`` (60): for how long to try to restore a lost connection. With 0 the session
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
        reconnect_timeout: float = 60.0,
        backoff: tuple[float, float] = (0.1, 5.0),
        again: bool = False,
    ) -> None:
        self._url = url
        timeout = float("inf") if open_timeout is None else open_timeout
        self._settings: dict[str, Any] = {
            "url": url,
            "node": None,
            "name": name,
            "token": token,
            "ssl": ssl,
            "patience": (reconnect_timeout, timeout, tuple(backoff)),
            "again": again,
            "home": None,
            "there": self._there,
        }

    def _there(self, home: BaseClient[Any, Any, Any], address: str) -> Coroutine[Any, Any, Any]:
        """Connects to another node for a client."""
        there = copy.copy(self)
        there._url = address
        there._settings = {**self._settings, "node": address, "home": home}
        make = (home._make_room, home._make_subscription, home._make_device)
        return there._connect(lambda settings: BaseClient(settings, home._thread, *make))

    async def _connect(self, make: Callable[[dict[str, Any]], C]) -> C:
        token, (_, limit, _) = self._settings["token"], self._settings["patience"]
        give = token if callable(token) else None
        token = token_bytes(token) if give is None else await given_token(give, limit)
        client = make({**self._settings, "token": token, "give_token": give})
        late = f"{self._url} did not answer"
        try:
            socket = await in_time(client._open(), limit, late, drop)
        except _ssl.SSLCertVerificationError:
            raise
        except (_ssl.SSLError, ConnectionResetError) as error:
            # Other errors of the system say what is wrong.
            has_ended = isinstance(error, (_ssl.SSLEOFError, ConnectionResetError))
            why = "the connection ended" if has_ended else str(error)
            raise self._failed(f"TLS failed: {why}", True) from error
        client._task = client._loop.create_task(client._run())
        client._use(socket)
        try:
            await in_time(asyncio.shield(client._welcome), limit, late)
        except SessionEnded as ended:
            await client._close()
            raise self._failed(str(ended)) from None
        except BaseException:
            await client._close()
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
        return self._connect(Client).__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect(Client)
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client._close()

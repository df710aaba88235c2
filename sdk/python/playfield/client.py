"""A client for the rooms, channels and devices of a Playfield node, for asyncio."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _playfield
from ._errors import Refused, SessionEnded
from ._values import call, dump, load, log, payload
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
from .room import Room, RoomInfo

__all__ = ["Client", "connect"]

_BYTES = 64 << 10

# The first and the longest delay before a lost connection is tried again, in seconds.
_DELAY_MIN = 0.1
_DELAY_MAX = 5.0

# How long `close` waits for a lost connection with unconfirmed messages, and then for the node to
# have taken everything and answered, in seconds.
_FAREWELL = 5.0


class Client:
    """A session with a node, made by :func:`connect`. It restores a lost connection by itself: what
    was sent is carried out once, and the rooms go on. Use it in its event loop only;
    ``playfield.sync`` has a client for blocking code."""

    def __init__(self, url: str, name: str, token: bytes, ssl: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._core = _playfield.Core(url, name, token)
        self._ssl = ssl
        self._writer: asyncio.StreamWriter | None = None
        self._asked: dict[int, asyncio.Future] = {}
        self._rooms: dict[int, Room] = {}
        self._subscriptions: dict[int, Subscription] = {}
        self._device: Device | None = None
        self._registering: dict[int, Device] = {}
        self._pings: dict[int, asyncio.Future] = {}
        self._schemas: dict[str, asyncio.Future] = {}
        self._spawned: set[asyncio.Task] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._welcome: asyncio.Future = self._loop.create_future()
        self._wait = 0.0
        self._error: Exception | None = None
        self._waiting: list[asyncio.Future] = []
        #: The session's number; another one after ``"new_session"``.
        self.session = 0
        #: ``"connected"``, ``"lost"`` while the connection is being restored, or ``"ended"``.
        self.status = "connected"
        self._on_statuses: list[Callable[[str], Any]] = []

    def on_status(self, function: Callable[[str], Any]) -> Callable:
        """Call ``function(status)`` whenever the status changes: with ``"lost"``; with
        ``"resumed"`` once the session goes on over another connection, or ``"new_session"`` if the
        node has not kept it, so that the rooms are to be joined again; and with ``"ended"``."""
        self._on_statuses.append(function)
        return function

    async def join_or_create(self, room_type: str, options: Any = None, *, key=None) -> Room:
        """Enter any room of a type that is not full, or the one with this key, or create it.

        ``options`` are a dict or a dataclass. Raises :class:`SchemaError` before anything is sent
        if they do not match the node's schema, and :class:`Refused`."""
        data = await self._options(room_type, options)
        return await self._enter(self._core.join_or_create(room_type, key, data))

    async def create(
        self, room_type: str, options: Any = None, *, key=None, private=False, code=False
    ) -> Room:
        """Create a room and enter it. With ``code``, the node picks a short key. A ``private`` room
        is in no list."""
        data = await self._options(room_type, options)
        return await self._enter(self._core.create(room_type, private, code, key, data))

    async def join(self, room_id: str) -> Room:
        """Enter the room with this id, or use a reservation."""
        return await self._enter(self._core.join(room_id))

    async def join_by_key(self, room_type: str, key: str) -> Room:
        """Enter the room of a type that has this key."""
        return await self._enter(self._core.join_by_key(room_type, key))

    async def list(
        self, room_type: str | None = None, *, limit: int = 0, **metadata: str
    ) -> list[RoomInfo]:
        """The rooms of one type or of all, those with this metadata, and at most ``limit``; 0 means
        the node's limit."""
        pairs = [(name, str(value)) for name, value in metadata.items()]
        return await self._ask(self._core.list(room_type, pairs, limit))

    async def subscribe(
        self, channel: str, *, since: Position | None = None, presence: bool = False
    ) -> Subscription:
        """Subscribe to a channel: to what is published from now on, or after ``since``, as far as
        the channel's history has it. After a lost connection it goes on where it was.

        Raises :class:`Refused`."""
        number = self._core.subscribe(channel, since, presence)
        subscription = Subscription(self, number, channel)
        self._subscriptions[number] = subscription
        await self._flush()
        try:
            await subscription._begun
        except asyncio.CancelledError:
            if self._subscriptions.pop(number, None) is not None:
                self._core.unsubscribe(number)
            raise
        return subscription

    async def publish(self, channel: str, message: Any) -> int:
        """Publish a JSON value or ``bytes``, as the channel's rule says. Returns its offset."""
        await self._ready()
        return await self._ask(self._core.publish(channel, *payload(message), True))

    async def publish_unconfirmed(self, channel: str, message: Any) -> None:
        """Publish without waiting for the node's answer; it waits while too much is unconfirmed."""
        await self._ready()
        self._core.publish(channel, *payload(message), False)
        await self._flush()

    async def members(self, channel: str) -> Members:
        """Ask who subscribes to a channel."""
        return await self._ask(self._core.members(channel))

    async def history(
        self, channel: str, *, since: Position | None = None, limit: int = 0
    ) -> History:
        """Ask for publications of a channel after ``since``; ``limit`` 0 means the node's limit."""
        return await self._ask(self._core.history(channel, since, limit))

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
        request = self._core.register(device, pairs, list(tags))
        self._registering[request] = Device(self, device)
        try:
            return await self._ask(request)
        finally:
            self._registering.pop(request, None)

    async def ping(self) -> float:
        """Measure the round trip to the node, in seconds."""
        future = self._pings[self._core.ping()] = self._loop.create_future()
        await self._flush()
        return await future

    async def close(self) -> None:
        """Say goodbye once everything that was sent is written, and end the session. It waits at
        most 5 seconds for the node's answer, which says that the node has taken all of it."""
        try:
            if not self._core.is_finished:
                await asyncio.wait_for(self._farewell(), _FAREWELL)
        except asyncio.TimeoutError:
            log.info("the node has not answered the goodbye in %s s", _FAREWELL)
        finally:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _farewell(self) -> None:
        is_welcome = self._welcome.done()
        while is_welcome and self.status == "lost" and self._core.unconfirmed_bytes > 0:
            await self._news()
        self._core.goodbye()
        self._write()
        if is_welcome:
            # The task reads until the node, which then has taken and confirmed everything, ends the
            # stream. To close it with something unread would reset it, and the node would lose what
            # it has not read yet.
            await asyncio.wait({self._task})

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind, value, traceback) -> None:
        await self.close()

    async def _enter(self, request: int) -> Room:
        room = await self._ask(request)
        await room._has_state
        await self._learn(room.type)
        return room

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
        except RuntimeError as error:
            log.info("no schema of %s: %s", room_type, error)
            return
        answer = self._asked[request] = self._loop.create_future()
        answer.add_done_callback(lambda answer: self._learned(room_type, answer))
        self._schemas[room_type] = self._loop.create_future()
        self._write()

    def _learned(self, room_type: str, answer: asyncio.Future) -> None:
        if not answer.cancelled() and answer.exception() is not None:
            log.info("no schema of %s: %s", room_type, answer.exception())
        future = self._schemas.pop(room_type)
        if not future.done():
            future.set_result(None)

    def _spawn(self, coroutine: Any) -> None:
        task = self._loop.create_task(coroutine)
        self._spawned.add(task)
        task.add_done_callback(self._spawned.discard)

    async def _ask(self, request: int) -> Any:
        future = self._asked[request] = self._loop.create_future()
        await self._flush()
        return await future

    def __repr__(self) -> str:
        return f"<Client session {self.session}, {self.status}>"

    # The connection.

    async def _open(self) -> asyncio.StreamReader:
        host, port, secure = self._core.address
        context = (self._ssl or True) if secure else None
        reader, self._writer = await asyncio.open_connection(host, int(port), ssl=context)
        return reader

    async def _run(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                await self._serve(reader)
                if not self._core.is_away:
                    break
                reader = await self._restore()
                if reader is None:
                    break
        finally:
            if self._timer is not None:
                self._timer.cancel()
            if self._writer is not None:
                self._writer.close()
            self._take(self._core.give_up())
            self._end(SessionEnded("the session has ended"))

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
        """Connects again, for as long as the node keeps the session."""
        self._writer.transport.abort()
        end = time.monotonic() + max(self._core.grace, 1.0)
        delay = _DELAY_MIN
        while time.monotonic() < end:
            pause = max(self._wait, delay * random.uniform(0.5, 1.0))
            self._wait = 0.0
            await asyncio.sleep(pause)
            delay = min(delay * 2, _DELAY_MAX)
            try:
                reader = await self._open()
            except OSError as error:
                log.info("could not connect again: %s", error)
                continue
            self._core.reconnect()
            return reader
        return None

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

    async def _ready(self) -> None:
        """Waits while too much is unconfirmed."""
        while self._core.is_full and not self._core.is_finished:
            await self._news()

    async def _flush(self) -> None:
        if self._core.is_finished:
            raise self._error or SessionEnded("the session has ended")
        self._write()
        if self._writer is not None and not self._core.is_away:
            try:
                await self._writer.drain()
            except OSError:
                pass  # The reader finds it too, and connects again.

    # What happens.

    def _take(self, events: list[tuple]) -> None:
        for name, *rest in events:
            getattr(self, "_on_" + name)(*rest)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def _status(self, status: str) -> None:
        self.status = status if status in ("lost", "ended") else "connected"
        # It may have been assigned instead.
        assigned = self.__dict__.get("on_status")
        for function in [*self._on_statuses, *([assigned] if assigned else [])]:
            call(function, status)

    def _answer(self, request: int, value: Any) -> None:
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

    def _on_lost(self, why: str) -> None:
        log.info("the connection was lost: %s", why)
        if self._writer is not None:
            self._writer.transport.abort()
        self._status("lost")

    def _on_resumed(self) -> None:
        self._status("resumed")

    def _on_new_session(self, session: int) -> None:
        self.session = session
        for room in self._rooms.values():
            room._end(Refused("connection_lost", "the session was not kept; join the room again"))
        self._rooms.clear()
        self._status("new_session")

    def _on_joined(self, request, number, room_id, room_type, key, player) -> None:
        room = Room(self, number, room_id, room_type, key, player)
        self._rooms[number] = room
        if not self._core.knows_schema(room_type):
            self._ask_schema(room_type)
        future = self._asked.get(request)
        if future is None or future.done():
            # Whoever asked was canceled.
            self._asked.pop(request, None)
            self._core.leave(number)
            return
        self._answer(request, room)

    def _on_left(self, number, request, code, text) -> None:
        room = self._rooms.pop(number, None)
        if room is not None:
            room._end(Refused(code, text or "this client is no longer in the room"))
        if request is not None:
            self._answer(request, None)

    def _on_reply(self, request: int, is_bytes: bool, data: bytes) -> None:
        self._answer(request, load(data, is_bytes))

    def _on_failed(self, request: int, code, text: str, retry_after: float | None) -> None:
        self._answer(request, Refused(code, text, retry_after))

    def _on_listed(self, request: int, rooms: list) -> None:
        self._answer(request, [RoomInfo(*room[:6], dict(room[6])) for room in rooms])

    def _on_schema(self, request: int | None, wrong: str | None) -> None:
        if request is not None:
            self._answer(request, None if wrong is None else ValueError(wrong))

    def _on_subscribed(self, number, epoch, offset, recovered, missed, members) -> None:
        if number in self._subscriptions:
            self._subscriptions[number]._subscribed(recovered, missed, members)

    def _on_unsubscribed(self, number: int, code: str, text: str) -> None:
        subscription = self._subscriptions.pop(number, None)
        if subscription is not None:
            subscription._end(Refused(code, text))

    def _on_publication(self, number, offset, user, is_bytes, data) -> None:
        if number in self._subscriptions:
            publication = Publication(offset, user, load(data, is_bytes))
            self._subscriptions[number]._published(publication)

    def _on_publications_missed(self, number: int, publications: int) -> None:
        if number in self._subscriptions:
            self._subscriptions[number].missed += publications

    def _on_presence(self, number, sequence, joined, session, user, name) -> None:
        if number in self._subscriptions:
            presence = Presence(sequence, joined, Member(session, user, name))
            self._subscriptions[number]._present(presence)

    def _on_published(self, request: int, offset: int) -> None:
        self._answer(request, offset)

    def _on_members(self, request: int, sequence: int, count: int, members: list) -> None:
        self._answer(request, Members(sequence, count, [Member(*member) for member in members]))

    def _on_history(self, request: int, epoch: int, offset: int, publications: list) -> None:
        past = [
            Publication(offset, user, load(data, is_bytes))
            for offset, user, is_bytes, data in publications
        ]
        self._answer(request, History(Position(epoch, offset), past))

    def _on_registered(self, request: int | None, is_new: bool, has_bytes: bool) -> None:
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
        log.warning("it is unknown whether %d messages were carried out", sends)

    def _on_pong(self, nonce: int, round_trip: float) -> None:
        future = self._pings.pop(nonce, None)
        if future is not None and not future.done():
            future.set_result(round_trip)

    def _on_event(self, number: int, name: str, payload: bytes) -> None:
        if number in self._rooms:
            self._rooms[number]._event(name, payload)

    def _on_missed(self, number: int, events: int) -> None:
        log.warning("%d events of room %d were missed", events, number)
        if number in self._rooms:
            for function in self._rooms[number]._missed:
                call(function, events)

    def _on_state(self, number: int, version: int, changes: list) -> None:
        if number in self._rooms:
            self._rooms[number]._update(version, changes)

    def _on_error(self, number: int | None, code: str, text: str) -> None:
        log.warning("%s (%s)", text, code)
        if number is None:
            self._error = Refused(code, text)
        elif number in self._rooms:
            for function in self._rooms[number]._refused:
                call(function, Refused(code, text))

    def _on_retry_after(self, seconds: float) -> None:
        self._wait = seconds

    def _on_goodbye(self, code: str, text: str) -> None:
        self._error = Refused(code, text)

    def _on_closed(self, why: str | None) -> None:
        self._end(self._error or SessionEnded(why or "the session has ended"))

    def _end(self, error: Exception) -> None:
        if self._error is None:
            self._error = error
        rooms, self._rooms = self._rooms, {}
        for room in rooms.values():
            room._end(Refused(None, str(error)))
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
            self._status("ended")


class connect:
    """Connect to a node: ``tcp://``, ``tls://``, ``ws://`` or ``wss://``.

    ``await connect(url)`` returns a :class:`Client`; ``async with connect(url) as client`` closes
    it at the end. ``name`` is the player's display name, ``token`` (``bytes`` or ``str``) is for
    the node's authenticator, ``ssl`` an ``ssl.SSLContext``, ``open_timeout`` in seconds.

    Raises ``OSError``, ``TimeoutError``, and :class:`Refused` if the node refuses the session.
    """

    def __init__(
        self, url: str, *, name: str = "", token: Any = b"", ssl: Any = None, open_timeout=10.0
    ) -> None:
        self._url = url
        self._name = name
        self._token = token.encode() if isinstance(token, str) else bytes(token)
        self._ssl = ssl
        self._timeout = open_timeout

    async def _connect(self) -> Client:
        client = Client(self._url, self._name, self._token, self._ssl)
        try:
            reader = await asyncio.wait_for(client._open(), self._timeout)
        except asyncio.TimeoutError:
            raise TimeoutError(f"{self._url} did not answer in {self._timeout} s") from None
        client._task = client._loop.create_task(client._run(reader))
        try:
            await asyncio.wait_for(asyncio.shield(client._welcome), self._timeout)
        except asyncio.TimeoutError:
            await client.close()
            raise TimeoutError(f"{self._url} did not answer in {self._timeout} s") from None
        except BaseException:
            await client.close()
            raise
        return client

    def __await__(self):
        return self._connect().__await__()

    async def __aenter__(self) -> Client:
        self._client = await self._connect()
        return self._client

    async def __aexit__(self, kind, value, traceback) -> None:
        await self._client.close()

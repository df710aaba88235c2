"""A client for the rooms, channels and devices of a Playfield node, for blocking code.

::

    import playfield.sync

    with playfield.sync.connect("tcp://127.0.0.1:7350", name="Ann") as client:
        table = client.join_or_create("table")
        print(table)
        table.request("Play", {"place": 0})

Each client has a thread of its own, which sends heartbeats and restores a lost connection, also
while the program computes or a notebook waits. Functions given to ``on``, ``on_change``,
``on_presence``, ``on_command`` and ``on_status`` are called in that thread: they should be short,
and can't call blocking methods of the same client. Any thread may use a client.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from ssl import SSLContext
from typing import Any, List, Type, TypeVar, overload

from . import channels, client, devices, room
from ._callbacks import plain_function
from ._errors import PlayfieldError, Refused, closed
from ._feed import Feed
from ._token import Token
from ._view import View
from .channels import History, Members, Position, Presence, Publication, Subscribed
from .room import RoomInfo

__all__ = [
    "ChannelEvents",
    "Client",
    "Command",
    "Device",
    "Events",
    "Room",
    "Statuses",
    "Subscription",
    "connect",
]

T = TypeVar("T")
R = TypeVar("R")


class _Thread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        # What is handed over before the loop is to stop is done. A signal handler may come between.
        self._lock = threading.RLock()
        self._is_stopping = False
        #: The client that is in it.
        self.client: client.Client | None = None
        # A daemon: a program that ends without closing its clients ends at once.
        self._thread = threading.Thread(target=self._run, name="playfield", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    @property
    def is_stopped(self) -> bool:
        """Whether nothing is done any more."""
        return self._is_stopping or not self._thread.is_alive()

    def call(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Runs a coroutine in the thread, and waits for its result."""
        why: Exception | None = None
        if self._process != os.getpid():
            why = RuntimeError("this process was forked from the client's: connect again here")
        elif threading.current_thread() is self._thread:
            why = RuntimeError("a function that the client calls can't wait for the client")
        else:
            with self._lock:
                if self.is_stopped:
                    why = self._closed()
                else:
                    future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        if why is not None:
            coroutine.close()
            raise why
        try:
            return future.result(timeout)
        except concurrent.futures.TimeoutError:
            # Or the coroutine has raised it, or has ended just now.
            if not future.cancel() and not future.cancelled():
                return future.result()
            raise TimeoutError(f"it took longer than {timeout} s") from None
        except concurrent.futures.CancelledError:
            raise self._closed() from None
        except BaseException:
            future.cancel()
            raise

    def _closed(self) -> Exception:
        ended = self.client and self.client.ended
        return ended.with_traceback(None) if ended else closed()

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls a function in the thread: what is there belongs to it."""
        if threading.current_thread() is self._thread:
            return function(*arguments)

        async def call() -> T:
            return function(*arguments)

        return self.call(call())

    def stop(self) -> None:
        if self._process != os.getpid() or threading.current_thread() is self._thread:
            return
        with self._lock:
            is_first, self._is_stopping = not self.is_stopped, True
            if is_first:
                asyncio.run_coroutine_threadsafe(self._finish(), self._loop)
        self._thread.join()
        if is_first:
            self._loop.close()

    async def _finish(self) -> None:
        """Ends what other threads wait for."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self._loop.call_soon(self._loop.stop)


class _Iterator:
    """A feed, for blocking code."""

    def __init__(self, thread: _Thread, feed: Feed) -> None:
        self._thread = thread
        self._feed = feed

    def next(self, timeout: float | None = None) -> Any:
        """Wait for the next one, for at most ``timeout`` seconds. Raises ``TimeoutError``, and
        ``StopIteration`` at the end."""
        feed = self._feed
        by = None if timeout is None else time.monotonic() + timeout
        while True:
            is_over = feed.is_over or self._thread.is_stopped
            # It is taken here: what was on its way to a thread that waits no longer would be lost.
            try:
                return self._wrap(feed.take(is_over))
            except StopAsyncIteration:
                raise StopIteration from None
            except queue.Empty:
                pass
            left = None if by is None else by - time.monotonic()
            if left is not None and left < 0.0:
                raise TimeoutError(f"it took longer than {timeout} s")
            with contextlib.suppress(TimeoutError, PlayfieldError):
                self._thread.call(feed.ready(), left)

    def _wrap(self, item: Any) -> Any:
        return item

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        return self.next()

    @property
    def dropped(self) -> int:
        """``int``: how many were dropped because too many waited."""
        return self._feed.dropped


class Events(_Iterator):
    """The events of a room: ``for name, payload in room.events()``."""


class ChannelEvents(_Iterator):
    """What happens in a channel: ``for event in subscription.events()``."""


class Statuses(_Iterator):
    """What happens to the connection: ``for event in client.events()``."""


class Room:
    """A room that this client is in. ``repr`` shows its state.

    It has what :class:`playfield.Room` has; methods that are awaited there wait here, for at most
    ``timeout`` seconds where they take one, and then raise ``TimeoutError``.
    """

    def __init__(self, thread: _Thread, of: room.Room) -> None:
        self._thread = thread
        self._room = of

    @property
    def id(self) -> str:
        """``str``: the room's id."""
        return self._room.id

    @property
    def type(self) -> str:
        """``str``: the room's type."""
        return self._room.type

    @property
    def key(self) -> str | None:
        """``str | None``: the room's key; ``None`` without one."""
        return self._room.key

    @property
    def player(self) -> int:
        """``int``: the number of the player that this client is."""
        return self._room.player

    @property
    def version(self) -> int:
        """``int``: the version of the copy."""
        return self._room.version

    @property
    def left(self) -> Refused | None:
        """``Refused | None``: why this client is no longer in the room; ``None`` while it is."""
        return self._room.left

    @property
    def status(self) -> str:
        """``str``: ``"joined"``, ``"lost"`` while a client with ``again=True`` joins it again, or
        ``"left"``."""
        return self._room.status

    def on_status(self, function: Callable[[str], R]) -> Callable[[str], R]:
        """Call ``function(status)``, in the client's thread, whenever :attr:`status` changes."""
        self._thread.run(self._room.on_status, function)
        return function

    @property
    def state(self) -> View:
        """``View``: the copy of the state, as of the last sync."""
        return self._room.state

    @overload
    def on(self, event: Type[T], function: Callable[[T], R]) -> Callable[[T], R]: ...

    @overload
    def on(self, event: str, function: Callable[[Any], R]) -> Callable[[Any], R]: ...

    @overload
    def on(self, event: None, function: Callable[[str, Any], R]) -> Callable[[str, Any], R]: ...

    def on(self, event: str | Type[Any] | None, function: Callable[..., Any]) -> Callable[..., Any]:
        """Call ``function(payload)`` for each event of this name, or ``function(name, payload)``
        for each event if the name is ``None``, in the client's thread. A dataclass stands for the
        event of its name."""
        self._thread.run(self._room.on, event, function)
        return function

    def events(self) -> Events:
        """The events from now on: ``for name, payload in room.events()``."""
        return Events(self._thread, self._thread.run(self._room.events))

    def on_missed(self, function: Callable[[int], R]) -> Callable[[int], R]:
        """Call ``function(events)``, before the next event, if so many were missed, in the client's
        thread."""
        self._thread.run(self._room.on_missed, function)
        return function

    def on_refused(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(refused)`` whenever a message of :meth:`send` was refused, in the client's
        thread."""
        self._thread.run(self._room.on_refused, function)
        return function

    def on_left(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(why)``, in the client's thread, once this client is no longer in the room:
        the room has closed, has removed this client or was left, or the session has ended."""
        self._thread.run(self._room.on_left, function)
        return function

    def on_change(
        self,
        pattern: str,
        function: Callable[[tuple[Any, ...], Any, Any], R],
    ) -> Callable[[tuple[Any, ...], Any, Any], R]:
        """Call ``function(path, old, new)`` whenever a place of the state changes, in the client's
        thread."""
        self._thread.run(self._room.on_change, pattern, function)
        return function

    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more. Does nothing if it was given to nothing here."""
        self._thread.run(self._room.off, function)

    @overload
    def request(
        self,
        message: Any,
        fields: Any = None,
        *,
        reply: None = None,
        timeout: float | None = None,
    ) -> Any: ...

    @overload
    def request(
        self, message: Any, fields: Any = None, *, reply: Type[T], timeout: float | None = None
    ) -> T: ...

    def request(
        self,
        message: Any,
        fields: Any = None,
        *,
        reply: Type[Any] | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Send a message and return the room's reply. A request that was sent may be carried out
        after a ``TimeoutError``."""
        return self._thread.call(self._room.request(message, fields, reply=reply), timeout)

    def send(self, message: Any, fields: Any = None) -> None:
        """Send a message that needs no reply."""
        self._thread.call(self._room.send(message, fields))

    def changed(self, timeout: float | None = None) -> None:
        """Wait for the next sync that changes the state. One may come between a look at the state
        and this call; :meth:`until` misses none."""
        self._thread.call(self._room.changed(), timeout)

    def until(self, condition: Callable[[View], Any], timeout: float | None = None) -> Any:
        """Wait until ``condition(state)`` is true, and return what it returned. The condition is
        called in the client's thread."""
        plain_function(condition, "the condition")
        return self._thread.call(self._room.until(condition), timeout)

    def leave(self) -> None:
        """Leave the room."""
        self._thread.call(self._room.leave())

    def __repr__(self) -> str:
        return repr(self._room)


class Subscription(_Iterator):
    """A subscription to a channel: ``for publication in subscription``, and what
    :class:`playfield.Subscription` has."""

    def __init__(self, thread: _Thread, of: channels.Subscription) -> None:
        super().__init__(thread, of._feed)
        self._subscription = of

    def next(self, timeout: float | None = None) -> Any:
        """Wait for the next publication, for at most ``timeout`` seconds. Raises ``TimeoutError``, and
        ``StopIteration`` at the end."""
        if self._subscription._early.keeps(Publication):
            with contextlib.suppress(PlayfieldError):
                self._thread.run(self._subscription.__aiter__)
        return super().next(timeout)

    @property
    def channel(self) -> str:
        """``str``: the channel's name."""
        return self._subscription.channel

    @property
    def recovered(self) -> bool:
        """``bool``: whether nothing was missed since the position it started from, or since the
        connection was lost."""
        return self._subscription.recovered

    @property
    def missed(self) -> int:
        """``int``: how many publications were missed, as far as is known."""
        return self._subscription.missed

    @property
    def members_count(self) -> int:
        """``int``: how many sessions subscribed when the node answered; 0 if this client may not
        know."""
        return self._subscription.members_count

    @property
    def ended(self) -> Exception | None:
        """``Exception | None``: why the subscription has ended."""
        return self._subscription.ended

    @property
    def position(self) -> Position | None:
        """``Position | None``: the place that was reached, to subscribe from later."""
        return self._subscription.position

    def on(self, function: Callable[[Publication], R]) -> Callable[[Publication], R]:
        """Call ``function(publication)`` for each publication, in the client's thread. Then none
        waits to be iterated."""
        self._thread.run(self._subscription.on, function)
        return function

    def on_presence(self, function: Callable[[Presence], R]) -> Callable[[Presence], R]:
        """Call ``function(presence)`` whenever another session subscribes, or does no longer."""
        self._thread.run(self._subscription.on_presence, function)
        return function

    def on_subscribed(self, function: Callable[[Subscribed], R]) -> Callable[[Subscribed], R]:
        """Call ``function(subscribed)``, in the client's thread, whenever the subscription goes on
        over a new connection."""
        self._thread.run(self._subscription.on_subscribed, function)
        return function

    def on_missed(self, function: Callable[[int], R]) -> Callable[[int], R]:
        """Call ``function(publications)``, in the client's thread, before the next publication, if
        so many were missed."""
        self._thread.run(self._subscription.on_missed, function)
        return function

    def on_unsubscribed(self, function: Callable[[Exception], R]) -> Callable[[Exception], R]:
        """Call ``function(why)``, in the client's thread, if the subscription ends by itself."""
        self._thread.run(self._subscription.on_unsubscribed, function)
        return function

    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more. Does nothing if it was given to nothing here."""
        self._thread.run(self._subscription.off, function)

    def events(self) -> ChannelEvents:
        """Everything that happens from now on, in its order: ``for event in
        subscription.events()``."""
        return ChannelEvents(self._thread, self._thread.run(self._subscription.events))

    def publish(self, payload: Any) -> int:
        """Publish to the channel. Returns the publication's offset."""
        return self._thread.call(self._subscription.publish(payload))

    def members(self) -> Members:
        """Ask who subscribes."""
        return self._thread.call(self._subscription.members())

    def history(self, *, since: Position | None = None, limit: int = 0) -> History:
        """Ask for past publications."""
        return self._thread.call(self._subscription.history(since=since, limit=limit))

    def unsubscribe(self) -> None:
        """End the subscription."""
        self._thread.call(self._subscription.unsubscribe())

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *raised: object) -> None:
        self._thread.call(self._subscription.__aexit__(*raised))

    def __repr__(self) -> str:
        return repr(self._subscription)


class Command:
    """A command to this device."""

    def __init__(self, thread: _Thread, of: devices.Command) -> None:
        self._thread = thread
        self._command = of

    @property
    def payload(self) -> Any:
        """``Any``: what is to be done."""
        return self._command.payload

    @property
    def wants_answer(self) -> bool:
        """``bool``: whether someone waits for the answer."""
        return self._command.wants_answer

    def answer(self, value: Any = None) -> None:
        """Answer the command."""
        self._thread.call(self._command.answer(value))

    def refuse(self, why: str) -> None:
        """Say why there is no answer."""
        self._thread.call(self._command.refuse(why))

    def __repr__(self) -> str:
        return repr(self._command)


class Device(_Iterator):
    """A registration of this session as a device: ``for command in device``, and what
    :class:`playfield.Device` has."""

    def __init__(self, thread: _Thread, of: devices.Device) -> None:
        super().__init__(thread, of._feed)
        self._device = of

    def _wrap(self, item: devices.Command) -> Command:
        return Command(self._thread, item)

    @property
    def id(self) -> str:
        """``str``: the device's id."""
        return self._device.id

    @property
    def is_new(self) -> bool:
        """``bool``: whether no device was registered under the id before."""
        return self._device.is_new

    def on_command(self, function: Callable[[Any], R]) -> Callable[[Any], R]:
        """Answer each command by what ``function(payload)`` returns, in the client's thread."""
        self._thread.run(self._device.on_command, function)
        return function

    def report(self, report: Any, timeout: float | None = None) -> Any:
        """Send a report, and return the fleet's reply."""
        return self._thread.call(self._device.report(report), timeout)

    def report_unconfirmed(self, report: Any) -> None:
        """Send a report without a reply."""
        self._thread.call(self._device.report_unconfirmed(report))

    def __repr__(self) -> str:
        return repr(self._device)


class Client:
    """A session with a node, made by :func:`connect`. It has what :class:`playfield.Client` has;
    what is awaited there waits here."""

    def __init__(self, thread: _Thread, of: client.Client) -> None:
        self._thread = thread
        self._client = thread.client = of
        of._on_statuses.append(self._status)

    @property
    def session(self) -> int:
        """``int``: the session's number."""
        return self._client.session

    @property
    def status(self) -> str:
        """``str``: ``"connected"``, ``"lost"`` while the connection is being restored, or
        ``"ended"``."""
        return self._client.status

    def on_status(self, function: Callable[[str], R]) -> Callable[[str], R]:
        """Call ``function(status)`` whenever the status changes, in the client's thread: with
        ``"lost"``, ``"resumed"``, ``"new_session"``, ``"weak"``, ``"back"`` or ``"ended"``."""
        self._thread.run(self._client.on_status, function)
        return function

    @property
    def ended(self) -> Exception | None:
        """``Exception | None``: why the session has ended; ``None`` while it lasts."""
        return self._client.ended

    def events(self) -> Statuses:
        """What happens to the connection from now on, with details: ``for event in
        client.events()``, where an event is a class of :mod:`playfield.status`."""
        return Statuses(self._thread, self._thread.run(self._client.events))

    def wait_for(self, status: str, timeout: float | None = None) -> None:
        """Wait until :attr:`status` is ``"connected"``, ``"lost"`` or ``"ended"``; or until the next
        ``"resumed"``, ``"new_session"``, ``"weak"`` or ``"back"``. Raises what has ended the session, unless it waits for
        that."""
        if status != self.status:
            self._thread.call(self._client.wait_for(status), timeout)

    def on_refused(self, function: Callable[[Refused], R]) -> Callable[[Refused], R]:
        """Call ``function(refused)``, in the client's thread, whenever the node has refused what has
        no answer and is about no room."""
        self._thread.run(self._client.on_refused, function)
        return function

    def off(self, function: Callable[..., Any]) -> None:
        """Call this function no more. Does nothing if it was given to nothing here."""
        self._thread.run(self._client.off, function)

    def _status(self, status: str) -> None:
        # It may have been assigned instead.
        assigned = self.__dict__.get("on_status")
        if assigned is not None:
            assigned(status)

    def join_or_create(
        self, room_type: str, options: Any = None, *, key: str | None = None
    ) -> Room:
        """Enter any room of a type that is not full, or the one with this key, or create it."""
        return self._enter(self._client.join_or_create(room_type, options, key=key))

    def create(
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
        return self._enter(
            self._client.create(room_type, options, key=key, private=private, code=code)
        )

    def join(self, room_id: str) -> Room:
        """Enter the room with this id, or use a reservation."""
        return self._enter(self._client.join(room_id))

    def join_by_key(self, room_type: str, key: str) -> Room:
        """Enter the room of a type that has this key."""
        return self._enter(self._client.join_by_key(room_type, key))

    def list(
        self, room_type: str | None = None, *, limit: int = 0, **metadata: str
    ) -> List[RoomInfo]:
        """The rooms of one type or of all, those with this metadata, and at most ``limit``."""
        return self._thread.call(self._client.list(room_type, limit=limit, **metadata))

    def schema(self, room_type: str) -> dict[str, Any]:
        """Ask for the schema of a type of rooms."""
        return self._thread.call(self._client.schema(room_type))

    def subscribe(
        self, channel: str, *, since: Position | None = None, presence: bool = False
    ) -> Subscription:
        """Subscribe to a channel: to what is published from now on, or after ``since``."""
        of = self._thread.call(self._client.subscribe(channel, since=since, presence=presence))
        return Subscription(self._thread, of)

    def publish(self, channel: str, message: Any) -> int:
        """Publish a JSON value or ``bytes``. Returns the publication's offset."""
        return self._thread.call(self._client.publish(channel, message))

    def publish_unconfirmed(self, channel: str, message: Any) -> None:
        """Publish without waiting for the node."""
        self._thread.call(self._client.publish_unconfirmed(channel, message))

    def members(self, channel: str) -> Members:
        """Ask who subscribes to a channel."""
        return self._thread.call(self._client.members(channel))

    def history(self, channel: str, *, since: Position | None = None, limit: int = 0) -> History:
        """Ask for publications of a channel after ``since``."""
        return self._thread.call(self._client.history(channel, since=since, limit=limit))

    def register(
        self,
        device: str,
        *,
        metadata: Mapping[str, str] | None = None,
        tags: Iterable[str] = (),
    ) -> Device:
        """Register this session as a device, under an id by which the fleet finds it."""
        of = self._thread.call(self._client.register(device, metadata=metadata, tags=tags))
        return Device(self._thread, of)

    def ping(self) -> float:
        """Measure the round trip to the node, in seconds."""
        return self._thread.call(self._client.ping())

    def close(self) -> None:
        """Say goodbye, and end the session and its thread. Once closed, it does nothing."""
        if not self._thread.is_stopped:
            try:
                self._thread.call(self._client.close())
            finally:
                self._thread.stop()

    def _enter(self, entering: Coroutine[Any, Any, room.Room]) -> Room:
        return Room(self._thread, self._thread.call(entering))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._client)


def connect(
    url: str,
    *,
    name: str = "",
    token: Token = b"",
    ssl: SSLContext | None = None,
    open_timeout: float | None = 10.0,
    reconnect_for: float = 60.0,
    backoff: tuple[float, float] = (0.1, 5.0),
    again: bool = False,
) -> Client:
    """Connect to a node: ``tcp://``, ``tls://``, ``ws://`` or ``wss://``. The client is a context
    manager that closes it.

    The settings and exceptions are those of :func:`playfield.connect`. A function that gives the
    token is not called in the caller's thread.
    """

    async def open_() -> client.Client:
        return await client.connect(
            url,
            name=name,
            token=token,
            ssl=ssl,
            open_timeout=open_timeout,
            reconnect_for=reconnect_for,
            backoff=backoff,
            again=again,
        )

    thread = _Thread()
    try:
        return Client(thread, thread.call(open_()))
    except BaseException:
        thread.stop()
        raise

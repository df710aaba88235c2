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

import contextlib
import queue
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from ssl import SSLContext
from typing import Any, List, Type, TypeVar, overload

from . import channels, client, devices, room
from ._errors import PlayfieldError
from ._feed import Feed
from ._threads import Thread, waits
from ._token import Token
from ._view import View
from .channels import Position, Publication
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


class _Waits:
    """What is of an event loop in a thread, for other threads."""

    _thread: Any

    def _wait(self, doing: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        result: T = self._thread.call(doing, timeout)
        return result


class _Iterator(_Waits):
    """A feed, for blocking code."""

    _feed: Feed

    def next(self, timeout: float | None = None) -> Any:
        """Wait for the next one, for at most ``timeout`` seconds. Raises ``TimeoutError``, and
        ``StopIteration`` at the end."""
        feed = self._feed
        by = None if timeout is None else time.monotonic() + timeout
        while True:
            is_over = feed.is_over or self._thread.is_stopped
            # It is taken here: what was on its way to a thread that waits no longer would be lost.
            try:
                return feed.take(is_over)
            except StopAsyncIteration:
                raise StopIteration from None
            except queue.Empty:
                pass
            left = None if by is None else by - time.monotonic()
            if left is not None and left < 0.0:
                raise TimeoutError(f"it took longer than {timeout} s")
            with contextlib.suppress(TimeoutError, PlayfieldError):
                self._thread.call(feed.ready(), left)

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        return self.next()

    @property
    def dropped(self) -> int:
        """``int``: how many were dropped because too many waited."""
        return self._feed.dropped


class _Feed(_Iterator):
    """A feed beside what it is of."""

    def __init__(self, thread: Thread, feed: Feed) -> None:
        self._thread, self._feed = thread, feed


class Events(_Feed):
    """The events of a room: ``for name, payload in room.events()``."""


class ChannelEvents(_Feed):
    """What happens in a channel: ``for event in subscription.events()``."""


class Statuses(_Feed):
    """What happens to the connection: ``for event in client.events()``."""


class Room(room.BaseRoom, _Waits):
    """A room that this client is in, as :class:`playfield.Room`: methods that are awaited there wait
    here, for at most ``timeout`` seconds where they take one, and then raise ``TimeoutError``. Functions
    are called in the client's thread. ``repr`` shows its state. Its attributes:

    - ``id`` (``str``): the room's id.
    - ``type`` (``str``): its type.
    - ``key`` (``str | None``): its key; ``None`` without one.
    - ``player`` (``int``): the number of the player that this client is.
    - ``info`` (``dict[str, Any]``): all that the node said of the room when this client joined it.
    - ``version`` (``int``): the number of the copy of the state, which grows with each snapshot and
      patch. Other clients' copies are numbered on their own.
    - ``state`` (:class:`View`): the copy of the state, as of the last sync.
    - ``left`` (``Refused | None``): why this client is no longer in the room, with a ``code``; ``None``
      while it is.
    - ``status`` (``str``): ``"joined"``, ``"lost"`` while a client with ``again=True`` joins it
      again, or ``"left"``.
    """

    def events(self) -> Events:
        """The events from now on: ``for name, payload in room.events()``."""
        return Events(self._thread, self._thread.run(self._listened))

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
        return self._wait(self._request(message, fields, reply), timeout)

    send = waits(room.Room.send)

    def changed(self, timeout: float | None = None) -> None:
        """Wait for the next sync that changes the state. One may come between a look at the state
        and this call; :meth:`until` misses none."""
        self._wait(self._changed(), timeout)

    def until(self, condition: Callable[[View], Any], timeout: float | None = None) -> Any:
        """Wait until ``condition(state)`` is true, and return what it returned. The condition is
        called in the client's thread."""
        return self._wait(self._until(condition), timeout)

    leave = waits(room.Room.leave)


class Subscription(channels.BaseSubscription, _Iterator):
    """A subscription to a channel, as :class:`playfield.Subscription`: ``for publication in
    subscription``. Functions are called in the client's thread. Its attributes:

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

    def next(self, timeout: float | None = None) -> Any:
        """Wait for the next publication, for at most ``timeout`` seconds. Raises ``TimeoutError``, and
        ``StopIteration`` at the end."""
        if self._early.keeps(Publication):
            with contextlib.suppress(PlayfieldError):
                self._thread.run(self._iterated)
        return super().next(timeout)

    def events(self) -> ChannelEvents:
        """Everything that happens from now on, in its order: ``for event in
        subscription.events()``."""
        return ChannelEvents(self._thread, self._thread.run(self._listened))

    publish = waits(channels.Subscription.publish)
    members = waits(channels.Subscription.members)
    history = waits(channels.Subscription.history)
    unsubscribe = waits(channels.Subscription.unsubscribe)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self._wait(self._exit())


class Command(devices.BaseCommand, _Waits):
    """A command to this device. Its attributes:

    - ``payload`` (``Any``): what is to be done: a JSON value or ``bytes``, as the fleet's settings say.
    - ``wants_answer`` (``bool``): whether someone waits for the answer.
    """

    answer = waits(devices.Command.answer)
    refuse = waits(devices.Command.refuse)


class Device(devices.BaseDevice, _Iterator):
    """A registration of this session as a device, as :class:`playfield.Device`: ``for command in
    device``. Functions are called in the client's thread. Its attributes:

    - ``id`` (``str``): the device's id.
    - ``is_new`` (``bool``): whether no device was registered under the id before.
    """

    _command_type = Command

    def report(self, report: Any, timeout: float | None = None) -> Any:
        """Send a report, and return the fleet's reply."""
        return self._wait(self._report(report), timeout)

    report_unconfirmed = waits(devices.Device.report_unconfirmed)


class Client(client.BaseClient[Room, Subscription, Device], _Waits):
    """A session with a node, made by :func:`connect`, as :class:`playfield.Client`: what is awaited
    there waits here. Functions are called in the client's thread. Its attributes:

    - ``session`` (``int``): the session's number; another one after ``"new_session"``.
    - ``status`` (``str``): ``"connected"``, ``"lost"`` while the connection is being restored, or
      ``"ended"``.
    - ``ended`` (``Exception | None``): why the session has ended; ``None`` while it lasts.
    """

    def __init__(self, settings: dict[str, Any], thread: Thread) -> None:
        super().__init__(settings, thread, Room, Subscription, Device)
        thread.client = self

    def events(self) -> Statuses:
        """What happens to the connection from now on, with details: ``for event in
        client.events()``, where an event is a class of :mod:`playfield.status`."""
        return Statuses(self._thread, self._thread.run(self._listened))

    def wait_for(self, status: str, timeout: float | None = None) -> None:
        """Wait until :attr:`status` is ``"connected"``, ``"lost"`` or ``"ended"``; or until the next
        ``"resumed"``, ``"new_session"``, ``"weak"`` or ``"back"``. Raises what has ended the session, unless it waits for
        that."""
        if status != self.status:
            self._wait(self._wait_for(status), timeout)

    def join_or_create(
        self, room_type: str, options: Any = None, *, key: str | None = None
    ) -> Room:
        """Enter any room of a type that is not full, or the one with this key, or create it."""
        return self._wait(self._join_or_create(room_type, options, key))

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
        return self._wait(self._create(room_type, options, key, private, code))

    def join(self, room_id: str) -> Room:
        """Enter the room with this id, or use a reservation."""
        return self._wait(self._join(room_id))

    def join_by_key(self, room_type: str, key: str) -> Room:
        """Enter the room of a type that has this key."""
        return self._wait(self._join_by_key(room_type, key))

    def list(
        self, room_type: str | None = None, *, limit: int = 0, **metadata: str
    ) -> List[RoomInfo]:
        """The rooms of one type or of all, those with this metadata, and at most ``limit``."""
        return self._wait(self._list(room_type, limit, metadata))

    schema = waits(client.Client.schema)

    def subscribe(
        self, channel: str, *, since: Position | None = None, presence: bool = False
    ) -> Subscription:
        """Subscribe to a channel: to what is published from now on, or after ``since``."""
        return self._wait(self._subscribe(channel, since, presence))

    publish = waits(client.Client.publish)
    publish_unconfirmed = waits(client.Client.publish_unconfirmed)
    members = waits(client.Client.members)
    history = waits(client.Client.history)

    def register(
        self,
        device: str,
        *,
        metadata: Mapping[str, str] | None = None,
        tags: Iterable[str] = (),
    ) -> Device:
        """Register this session as a device, under an id by which the fleet finds it."""
        return self._wait(self._register(device, metadata, tags))

    ping = waits(client.Client.ping)

    def close(self) -> None:
        """Say goodbye, and end the session and its thread. Once closed, it does nothing."""
        if not self._thread.is_stopped:
            try:
                self._wait(self._close())
            finally:
                self._thread.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(
    url: str,
    *,
    name: str = "",
    token: Token = b"",
    ssl: SSLContext | None = None,
    open_timeout: float | None = 10.0,
    reconnect_timeout: float = 60.0,
    backoff: tuple[float, float] = (0.1, 5.0),
    again: bool = False,
) -> Client:
    """Connect to a node: ``tcp://``, ``tls://``, ``ws://`` or ``wss://``. The client is a context
    manager that closes it.

    The settings and exceptions are those of :func:`playfield.connect`. A function that gives the
    token is not called in the caller's thread.
    """

    connecting = client.connect(
        url,
        name=name,
        token=token,
        ssl=ssl,
        open_timeout=open_timeout,
        reconnect_timeout=reconnect_timeout,
        backoff=backoff,
        again=again,
    )
    thread = Thread()
    try:
        return thread.call(connecting._connect(lambda settings: Client(settings, thread)))
    except BaseException:
        thread.stop()
        raise

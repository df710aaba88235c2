"""A client for the rooms of a Playfield node, for asyncio."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any

from . import _playfield

__all__ = ["Client", "Refused", "Room", "SessionEnded", "connect"]

_log = logging.getLogger("playfield")

_BYTES = 64 << 10

# The first and the longest delay before a lost connection is tried again, in seconds.
_DELAY_MIN = 0.1
_DELAY_MAX = 5.0


class Refused(Exception):
    """The node or the room has refused a request, or it is unknown whether it was carried out.

    ``code`` is the protocol's name for why, such as ``room_full``; ``None`` if the answer is lost.
    """

    def __init__(self, code: str | None, text: str) -> None:
        super().__init__(f"{text} ({code})" if code else text)
        self.code = code
        self.text = text


class SessionEnded(Exception):
    """The session is over: it was closed, or the connection could not be restored in time."""


class View:
    """A read-only view of a value in a state: objects by attribute or key, lists by index."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def __getattr__(self, name: str) -> Any:
        if isinstance(self._value, dict) and name in self._value:
            return view(self._value[name])
        raise AttributeError(f"the state has no {name!r} here")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(self._value, dict):
            key = str(key)
        return view(self._value[key])

    def __contains__(self, key: Any) -> bool:
        return (str(key) if isinstance(self._value, dict) else key) in self._value

    def __iter__(self):
        if isinstance(self._value, dict):
            return iter(self._value)
        return map(view, self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __eq__(self, other: Any) -> bool:
        return self._value == plain(other)

    def __dir__(self):
        return list(self._value) if isinstance(self._value, dict) else []

    def __repr__(self) -> str:
        return json.dumps(self._value, indent=2, ensure_ascii=False)

    def items(self):
        """The keys of an object, with views of its values."""
        return [(key, view(value)) for key, value in self._value.items()]


def view(value: Any) -> Any:
    return View(value) if isinstance(value, (dict, list)) else value


def plain(value: Any) -> Any:
    """The dicts and lists behind a view."""
    return value._value if isinstance(value, View) else value


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
        self._changes: list[tuple[list[str], Callable]] = []
        self._waiters: list[asyncio.Future] = []
        self._has_state = client._loop.create_future()

    @property
    def state(self) -> Any:
        """The copy of the state, as of the last sync: ``room.state.players["7"].name``."""
        if self._read_version != self.version and self.left is None:
            text = self._client._core.state(self._number)
            self._state = json.loads(text) if text else None
            self._read_version = self.version
        return view(self._state)

    def on(self, event: str | None, function: Callable) -> Callable:
        """Call ``function(payload)`` for each event of this name, or ``function(name, payload)``
        for each event if the name is ``None``."""
        self._events.setdefault(event, []).append(function)
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

    async def request(self, name: str, message: Any = None) -> Any:
        """Send a message and return the room's reply. Raises :class:`Refused`."""
        core = self._client._core
        return await self._client._ask(core.request(self._current(), name, _dump(message)))

    async def send(self, name: str, message: Any = None) -> None:
        """Send a message that needs no reply."""
        self._client._core.send(self._current(), name, _dump(message))
        await self._client._flush()

    async def changed(self) -> None:
        """Wait for the next sync that changes the state. Raises :class:`Refused` if this client is
        no longer in the room."""
        self._current()
        future = self._client._loop.create_future()
        self._waiters.append(future)
        await future

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
                if _matches(pattern, path):
                    values = [None if text is None else json.loads(text) for text in (old, new)]
                    _call(function, tuple(path), *values)

    def _event(self, name: str, payload: bytes) -> None:
        value = _load(payload)
        for function in self._events.get(name, ()):
            _call(function, value)
        for function in self._events.get(None, ()):
            _call(function, name, value)

    def _end(self, why: Refused) -> None:
        self.state  # The last copy stays.
        self.left = why
        for future in [*self._waiters, self._has_state]:
            if not future.done():
                future.set_exception(why)
                future.exception()

    def __repr__(self) -> str:
        return f"<Room {self.type} {self.id} {self.state!r}>"


class Client:
    """A session with a node, made by :func:`connect`. It restores a lost connection by itself: what
    was sent is carried out once, and the rooms go on."""

    def __init__(self, url: str, name: str, token: bytes, ssl: Any) -> None:
        self._loop = asyncio.get_running_loop()
        self._core = _playfield.Core(url, name, token)
        self._ssl = ssl
        self._writer: asyncio.StreamWriter | None = None
        self._asked: dict[int, asyncio.Future] = {}
        self._rooms: dict[int, Room] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._welcome: asyncio.Future = self._loop.create_future()
        self._wait = 0.0
        self._error: Exception | None = None
        #: Called with ``"lost"``, ``"resumed"``, ``"new_session"`` or ``"ended"``.
        self.on_status: Callable[[str], Any] | None = None

    async def join_or_create(self, room_type: str, options: Any = None, *, key=None) -> Room:
        """Enter any room of a type that is not full, or the one with this key, or create it."""
        core = self._core
        return await self._enter(core.join_or_create(room_type, key, _dump(options, b"")))

    async def create(
        self, room_type: str, options: Any = None, *, key=None, private=False, code=False
    ) -> Room:
        """Create a room and enter it. With ``code``, the node picks a short key."""
        core = self._core
        return await self._enter(core.create(room_type, private, code, key, _dump(options, b"")))

    async def join(self, room_id: str) -> Room:
        """Enter the room with this id, or use a reservation."""
        return await self._enter(self._core.join(room_id))

    async def join_by_key(self, room_type: str, key: str) -> Room:
        """Enter the room of a type that has this key."""
        return await self._enter(self._core.join_by_key(room_type, key))

    async def close(self) -> None:
        """Say goodbye, and end the session."""
        if not self._core.is_finished:
            self._core.goodbye()
            await self._flush()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind, value, traceback) -> None:
        await self.close()

    async def _enter(self, request: int) -> Room:
        room = await self._ask(request)
        await room._has_state
        return room

    async def _ask(self, request: int) -> Any:
        future = self._asked[request] = self._loop.create_future()
        await self._flush()
        return await future

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
                _log.info("could not connect again: %s", error)
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

    def _status(self, status: str) -> None:
        if self.on_status is not None:
            _call(self.on_status, status)

    def _answer(self, request: int, value: Any) -> None:
        future = self._asked.pop(request, None)
        if future is None or future.done():
            return
        if isinstance(value, Exception):
            future.set_exception(value)
        else:
            future.set_result(value)

    def _on_welcome(self, session: int) -> None:
        if not self._welcome.done():
            self._welcome.set_result(None)

    def _on_lost(self, why: str) -> None:
        _log.info("the connection was lost: %s", why)
        if self._writer is not None:
            self._writer.transport.abort()
        self._status("lost")

    def _on_resumed(self) -> None:
        self._status("resumed")

    def _on_new_session(self, session: int) -> None:
        for room in self._rooms.values():
            room._end(Refused(None, "the session was not kept; join the room again"))
        self._rooms.clear()
        self._status("new_session")

    def _on_joined(self, request, number, room_id, room_type, key, player) -> None:
        room = Room(self, number, room_id, room_type, key, player)
        self._rooms[number] = room
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

    def _on_reply(self, request: int, payload: bytes) -> None:
        self._answer(request, _load(payload))

    def _on_failed(self, request: int, code: str | None, text: str) -> None:
        self._answer(request, Refused(code, text))

    def _on_event(self, number: int, name: str, payload: bytes) -> None:
        if number in self._rooms:
            self._rooms[number]._event(name, payload)

    def _on_missed(self, number: int, events: int) -> None:
        _log.warning("%d events of room %d were missed", events, number)

    def _on_state(self, number: int, version: int, changes: list) -> None:
        if number in self._rooms:
            self._rooms[number]._update(version, changes)

    def _on_error(self, number: int | None, code: str, text: str) -> None:
        _log.warning("%s (%s)", text, code)
        if number is None:
            self._error = Refused(code, text)

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
        asked, self._asked = self._asked, {}
        for future in [*asked.values(), self._welcome]:
            if not future.done():
                future.set_exception(error)
                future.exception()
        if rooms or asked:
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


def _dump(value: Any, nothing: bytes = b"null") -> bytes:
    value = plain(value)
    return nothing if value is None else json.dumps(value, ensure_ascii=False).encode()


def _load(payload: bytes) -> Any:
    return json.loads(payload) if payload else None


def _matches(pattern: list[str], path: list) -> bool:
    if pattern and pattern[-1] == "**":
        pattern, path = pattern[:-1], path[: len(pattern) - 1]
    return len(pattern) == len(path) and all(
        step == "*" or step == str(place) for step, place in zip(pattern, path)
    )


def _call(function: Callable, *arguments: Any) -> None:
    """Calls the program; its mistakes don't end the session."""
    try:
        function(*arguments)
    except Exception:
        _log.exception("a callback raised an exception")

"""Devices, for asyncio."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from ._feed import Feed
from ._threads import in_loop
from ._values import load, log

if TYPE_CHECKING:
    from .client import BaseClient

__all__ = ["Command", "Device"]


R = TypeVar("R")


class BaseCommand:
    """What commands have in common, however a program waits."""

    def __init__(
        self, client: BaseClient[Any, Any, Any], number: int | None, value: Any
    ) -> None:
        self._client = client
        self._thread: Any = client._thread
        self._session = client.session
        self._number = number
        self.payload = value

    @property
    def wants_answer(self) -> bool:
        """``bool``: whether someone waits for the answer."""
        return self._number is not None

    async def _reply(self, value: Any, why: str | None) -> None:
        self._answer(value, why)
        await self._client._flush()

    def _answer(self, value: Any, why: str | None) -> None:
        data = b"" if why is not None else self._client._fleet_payload(value)
        number, self._number = self._number, None
        if number is not None and self._session == self._client.session:
            self._client._core.answer(number, data, why)

    def __repr__(self) -> str:
        return f"<Command {self.payload!r}>"


class BaseDevice:
    """What devices have in common, however a program waits."""

    _command_type: type[BaseCommand]

    def __init__(self, client: BaseClient[Any, Any, Any], device_id: str) -> None:
        self._client = client
        self._thread: Any = client._thread
        self._feed: Feed = Feed(lambda command: command._answer(None, "too many commands wait"))
        self._function: Callable[..., Any] | None = None
        self.id = device_id
        self.is_new = False

    @in_loop
    def on_command(self, function: Callable[[Any], R]) -> Callable[[Any], R]:
        """Answer each command by what ``function(payload)`` returns, also those that wait already; a
        coroutine is awaited. An exception refuses the command with its text."""
        if not callable(function):
            raise TypeError(f"on_command takes a function, not {function!r}")
        self._function = function
        self._client._loop.call_soon(self._carry_out_waiting)
        return function

    async def _report(self, report: Any) -> Any:
        client = self._client
        data = client._fleet_payload(report)
        return await client._ask(
            client._live().report(data, True), lambda data: load(data, bool(client._fleet_has_bytes))
        )

    def _command(self, command: BaseCommand) -> None:
        if self._function is None:
            self._feed.put(command)
            return
        for earlier in self._feed.take_all():
            self._carry_out(earlier)
        self._carry_out(command)

    def _carry_out_waiting(self) -> None:
        for earlier in self._feed.take_all():
            self._carry_out(earlier)
        self._client._write()

    def _carry_out(self, command: BaseCommand) -> None:
        assert self._function is not None
        try:
            value = self._function(command.payload)
            if inspect.isawaitable(value):
                self._client._spawn(self._answer_later(command, value))
            else:
                command._answer(value, None)
        except Exception as error:
            command._answer(None, self._why(error))

    async def _answer_later(self, command: BaseCommand, value: Any) -> None:
        try:
            await command._reply(await value, None)
        except Exception as error:
            await command._reply(None, self._why(error))

    def _why(self, error: Exception) -> str:
        """An exception is the answer to the sender of the command; here it is logged as a line."""
        log.warning("a command to the device %s was refused: %r", self.id, error)
        log.debug("it was refused by this exception", exc_info=error)
        return str(error) or type(error).__name__

    def _end(self, why: Exception | None) -> None:
        self._feed.end(why)

    def __repr__(self) -> str:
        return f"<Device {self.id}>"


class Command(BaseCommand):
    """A command to this device. Its attributes:

    - ``payload`` (``Any``): what is to be done: a JSON value or ``bytes``, as the fleet's settings say.
    - ``wants_answer`` (``bool``): whether someone waits for the answer.
    """

    async def answer(self, value: Any = None) -> None:
        """Answer. Does nothing if no answer is wanted, or the session in which the command came is
        over."""
        await self._reply(value, None)

    async def refuse(self, why: str) -> None:
        """Say why there is no answer."""
        await self._reply(None, why)


class Device(BaseDevice):
    """A registration of this session as a device, made by :meth:`Client.register`.

    ``async for command in device`` takes the commands one by one, or :meth:`on_command` has a
    function answer them. Past 1,024 that wait, the oldest is refused. It ends if another call to
    ``register`` replaces it. Its attributes:

    - ``id`` (``str``): the device's id.
    - ``is_new`` (``bool``): whether no device was registered under the id before.
    """

    _command_type = Command

    async def report(self, report: Any) -> Any:
        """Send a report, a JSON value or ``bytes`` as the fleet's settings say, and return the fleet's
        reply. Raises :class:`SchemaError` before anything is sent if it is of the other kind, and
        :class:`Refused`."""
        return await self._report(report)

    async def report_unconfirmed(self, report: Any) -> None:
        """Send a report without a reply."""
        client, data = self._client, self._client._fleet_payload(report)
        await client._ready()
        client._live().report(data, False)
        await client._flush()

    def __aiter__(self) -> Feed:
        return self._feed

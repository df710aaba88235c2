"""The nodes of a cluster that have rooms of a client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from . import _playfield
from ._backoff import pause
from ._errors import PlayfieldError, Refused, SchemaError, closed
from ._playfield import Event

if TYPE_CHECKING:
    from .client import BaseClient

#: The time for which the session at another node is kept without a room, in seconds.
IDLE = _playfield.NODE_IDLE


class Nodes:
    """The sessions of a client: the first one, and one at each other node that has a room of it."""

    def __init__(
        self, first: BaseClient[Any, Any, Any], connect: Callable[[Any, str], Awaitable[Any]]
    ) -> None:
        self._first = first
        self._connect = connect
        self._others: list[BaseClient[Any, Any, Any]] = []
        self._opening: dict[str, asyncio.Task[Any]] = {}
        # Sessions that have no room now.
        self._idle: dict[BaseClient[Any, Any, Any], asyncio.TimerHandle] = {}

    async def join(self, ask: Callable[[_playfield.Core], int], again: Any = None) -> Any:
        """Asks the first node for a room, and goes where it redirects the client. ``again`` is a
        room that is joined again."""
        first, way = self._first, None
        address, asked, tries = None, ask, 0
        while True:
            try:
                node = first if address is None else await self._at(address)
                found = await node._seat(asked(node._live()), again)
            except (PlayfieldError, OSError) as error:
                step = _after(way, error) if way and address and not first.ended else None
                if step is None:
                    raise
            else:
                if not isinstance(found, Event.Redirected):
                    return found
                way = way or _playfield.Route(first._core)
                step = way.redirected(found.addresses, found.reservation)
            kind, what = step
            if kind == "unreachable":
                raise Refused(kind, what)
            if kind == "there":
                address, reservation = what, found.reservation
                asked = _taking(reservation) if reservation else ask
                continue
            address, asked, tries = None, ask, tries + 1
            await asyncio.sleep(pause(first._backoff, tries))

    async def _at(self, address: str) -> BaseClient[Any, Any, Any]:
        """The session at the node with this address, which is opened if there is none."""
        for node in [self._first, *self._others]:
            if node.ended is None and node._core.is_at(address):
                return node
        opening = self._opening.get(address)
        if opening is None:
            opening = self._first._loop.create_task(self._open(address))
            self._opening[address] = opening
            # Who asked may have been canceled.
            opening.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            node = await asyncio.shield(opening)
            return node
        except asyncio.CancelledError:
            if self._first.ended is not None:
                raise self._first.ended.with_traceback(None) from None
            raise

    async def _open(self, address: str) -> Any:
        try:
            node = await self._connect(self._first, address)
        finally:
            del self._opening[address]
        if self._first.ended is not None:
            await node._close()
            raise closed()
        self._others.append(node)
        return node

    def used(self, node: BaseClient[Any, Any, Any]) -> None:
        """Something has happened in a session. One at another node is closed after a while without
        a room."""
        if node is self._first:
            return
        is_idle = node.ended is None and not node._rooms and not node._asked
        if is_idle and node not in self._idle:
            self._idle[node] = node._loop.call_later(IDLE, self._rest, node)
        elif not is_idle and node in self._idle:
            self._idle.pop(node).cancel()

    def _rest(self, node: BaseClient[Any, Any, Any]) -> None:
        del self._idle[node]
        self._first._spawn(node._close())

    def take(self, client: BaseClient[Any, Any, Any]) -> list[BaseClient[Any, Any, Any]]:
        """The sessions that are to be closed with this one."""
        if client is not self._first:
            return []
        others, self._others = self._others, []
        return others

    def over(self, client: BaseClient[Any, Any, Any], error: Exception) -> None:
        """A session is over, and with the first one all are."""
        self.used(client)
        if client in self._others:
            self._others.remove(client)
        for node in self.take(client):
            node._error = node._error or error
            node._task.cancel()
        if client is self._first:
            for opening in self._opening.values():
                opening.cancel()


def _taking(reservation: str) -> Callable[[_playfield.Core], int]:
    return lambda core: core.join(reservation)


def _after(way: _playfield.Route, error: Exception) -> tuple[str, str] | None:
    """The next step after another node could not be joined; ``None`` if that is the answer."""
    if isinstance(error, SchemaError):
        return None
    if isinstance(error, Refused) and error.code != "connection_lost":
        return way.refused(error.code or "")
    return way.unreachable(str(error))

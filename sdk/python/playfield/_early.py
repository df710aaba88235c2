"""What has come before anyone listened for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from ._feed import WAITING_MAX

#: How many bytes of payloads wait. Past it, the oldest is dropped.
BYTES_MAX = 1 << 20


#: The kind of what was kept before its kind is known.
UNKNOWN = object()


class Early:
    """Passes on what has come, in its order: what has a kind that someone listens for at once, and
    the rest once someone does. A program sets up its functions one by one, in the client's thread or
    after a wait, and misses nothing in between."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, deliver: Callable[[Any, Any], None]
    ) -> None:
        self._loop = loop
        self._deliver = deliver
        self._items: deque[tuple[Any, Any, int]] = deque()
        self._bytes = 0
        # The kinds that are passed on, and those that will be soon; ``None`` stands for all.
        self._heard: set[Any] = set()
        self._wanted: set[Any] = set()

    def put(self, kind: Any, item: Any, item_bytes: int = 0) -> None:
        if kind in self._heard or None in self._heard:
            self._deliver(kind, item)
            return
        self.keep(kind, item, item_bytes)

    def keep(self, kind: Any, item: Any, item_bytes: int) -> None:
        """Keeps it, whoever listens; :data:`UNKNOWN` waits for :meth:`take_kept`."""
        self._items.append((kind, item, item_bytes))
        self._bytes += item_bytes
        while len(self._items) > WAITING_MAX or self._bytes > BYTES_MAX:
            self._bytes -= self._items.popleft()[2]

    def keeps(self, kind: Any) -> bool:
        """Whether items of this kind still wait for someone who listens."""
        known = self._heard | self._wanted
        return kind not in known and None not in known

    def listen(self, kind: Any) -> None:
        """Someone listens for this kind, or all if it is ``None``: what came before follows, when
        others have had time to begin, too."""
        if self.keeps(kind):
            self._wanted.add(kind)
            self._loop.call_soon(self.release)

    def skip(self, kind: Any) -> None:
        """What came of this kind is taken elsewhere."""
        if self.keeps(kind):
            self._heard.add(kind)
            self._take(lambda of: of == kind)

    def release(self) -> None:
        """Passes on what someone listens for by now."""
        wanted, self._wanted = self._wanted, set()
        self._heard |= wanted
        is_all = None in wanted
        for kind, item in self._take(lambda of: of in wanted or is_all and of is not UNKNOWN):
            self._deliver(kind, item)

    def take_kept(self) -> list[Any]:
        """What was kept while its kind was unknown."""
        return [item for _, item in self._take(lambda of: of is UNKNOWN)]

    def _take(self, is_taken: Callable[[Any], bool]) -> list[tuple[Any, Any]]:
        taken, rest = [], deque[tuple[Any, Any, int]]()
        for item in self._items:
            if is_taken(item[0]):
                taken.append(item[:2])
                self._bytes -= item[2]
            else:
                rest.append(item)
        self._items = rest
        return taken

"""``websockets.datastructures``'s names: headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Union

from .exceptions import InvalidHeaderValue

try:
    from websockets.datastructures import MultipleValuesError
except ImportError:

    class MultipleValuesError(LookupError):  # type: ignore[no-redef]
        """A header has several values where one is asked for."""


__all__ = ["Headers", "HeadersLike", "MultipleValuesError"]

_is_value = re.compile(r"[\x09\x20-\x7e\x80-\xff]*").fullmatch


class Headers(MutableMapping):
    """Headers: a mapping whose keys ignore case.

    ``headers[name]`` raises ``KeyError`` without a value, and :class:`MultipleValuesError` if there
    are several; ``get_all(name)`` is a list of all. ``headers[name] = value`` adds a value;
    ``InvalidHeaderValue`` refuses one with a line end. ``raw_items()`` are all pairs in their order.
    """

    __slots__ = ("_by_name", "_pairs")

    def __init__(self, *args: Any, **kwargs: str) -> None:
        self._by_name: dict[str, list[str]] = {}
        self._pairs: list[tuple[str, str]] = []
        self.update(*args, **kwargs)

    def __getitem__(self, name: str) -> str:
        values = self._by_name[name.lower()]
        if len(values) > 1:
            raise MultipleValuesError(name)
        return values[0]

    def __setitem__(self, name: str, value: str) -> None:
        if not _is_value(str(value)):
            raise InvalidHeaderValue(name, value)
        self.set_insecure(name, value)

    def set_insecure(self, name: str, value: str) -> None:
        """Add a value without a look at it."""
        self._by_name.setdefault(name.lower(), []).append(value)
        self._pairs.append((name, value))

    def __delitem__(self, name: str) -> None:
        del self._by_name[name.lower()]
        self._pairs = [pair for pair in self._pairs if pair[0].lower() != name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: Any) -> bool:
        return self._by_name == other._by_name if isinstance(other, Headers) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def update(self, *args: Any, **kwargs: str) -> None:  # type: ignore[override]
        """Add the values of other headers, a mapping or pairs."""
        pairs = (arg.raw_items() if hasattr(arg, "raw_items") else arg for arg in args)
        super().update(*pairs, **kwargs)

    def clear(self) -> None:
        """Remove all."""
        self._by_name, self._pairs = {}, []

    def copy(self) -> Headers:
        """Headers with the same values."""
        other = Headers()
        for name, value in self._pairs:
            other.set_insecure(name, value)
        return other

    def get_all(self, name: str) -> list[str]:
        """All values of a header; none is an empty list."""
        return self._by_name.get(name.lower(), [])

    def raw_items(self) -> Iterator[tuple[str, str]]:
        """All headers, in their order."""
        return iter(self._pairs)

    def serialize(self) -> bytes:
        """The lines of the headers, and an empty one."""
        return str(self).encode("latin-1")

    def __str__(self) -> str:
        return "".join(f"{name}: {value}\r\n" for name, value in self._pairs) + "\r\n"

    def __repr__(self) -> str:
        return f"Headers({self._pairs!r})"


HeadersLike = Union[Headers, Mapping[str, str], Iterable[tuple[str, str]]]

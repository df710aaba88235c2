"""Values as JSON, and views of the JSON of a state."""

from __future__ import annotations

import base64
import dataclasses
import enum
import json
import logging
from collections.abc import Callable
from typing import Any

log = logging.getLogger("playfield")


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

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self):
        return list(self._value) if isinstance(self._value, dict) else []

    def __repr__(self) -> str:
        return json.dumps(self._value, indent=2, ensure_ascii=False)

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or ``default``."""
        return self[key] if key in self else default

    def keys(self):
        """The keys of an object, as text."""
        return self._value.keys()

    def values(self):
        """Views of the values of an object."""
        return [view(value) for value in self._value.values()]

    def items(self):
        """The keys of an object, with views of its values."""
        return [(key, view(value)) for key, value in self._value.items()]


def view(value: Any) -> Any:
    return View(value) if isinstance(value, (dict, list)) else value


def plain(value: Any) -> Any:
    """The dicts and lists behind a view."""
    return value._value if isinstance(value, View) else value


def _encode(value: Any) -> Any:
    """What ``json`` does not know: dataclasses, bytes, sets, enums and views."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return {str(key): True for key in value}
    if isinstance(value, View):
        return plain(value)
    if isinstance(value, enum.Enum):
        return value.name
    raise TypeError(f"a message holds {value!r}, which is no JSON, bytes, set, enum or dataclass")


def dump(value: Any, nothing: bytes = b"null") -> bytes:
    """A value as JSON; ``nothing`` for ``None``."""
    if value is None:
        return nothing
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_encode).encode()


def payload(value: Any) -> tuple[bytes, bool]:
    """The payload of a publication or a report, and whether it is bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), True
    return dump(value), False


def load(data: bytes, is_bytes: bool = False) -> Any:
    """What has come: bytes, or JSON."""
    if is_bytes:
        return data
    return json.loads(data) if data else None


def matches(pattern: list[str], path: list) -> bool:
    if pattern and pattern[-1] == "**":
        pattern, path = pattern[:-1], path[: len(pattern) - 1]
    return len(pattern) == len(path) and all(
        step == "*" or step == str(place) for step, place in zip(pattern, path)
    )


def call(function: Callable, *arguments: Any) -> Any:
    """Calls the program; its mistakes don't end the session."""
    try:
        return function(*arguments)
    except Exception:
        log.exception("a callback raised an exception")

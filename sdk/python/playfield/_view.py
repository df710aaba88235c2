"""Views of the JSON of a state."""

from __future__ import annotations

import copy
import enum
import json
from collections.abc import Iterator
from typing import Any

from ._names import attributes, wire_name
from ._shape import Shape, known


class View:
    """A read-only view of a value in a state.

    Fields are attributes: ``state.round``. Members of any kind are in brackets: ``state["round"]``,
    ``state.players[7]``, ``state.played[0]``; ``in``, ``len`` and ``for`` work as on a dict or a
    list. Maps have ``keys``, ``values``, ``items`` and ``get`` too. :func:`playfield.plain` makes
    dicts and lists of a view.
    """

    __slots__ = ("_shape", "_value")

    def __init__(self, value: Any, shape: Shape | None = None) -> None:
        self._value = value
        self._shape = shape

    def __getattr__(self, name: str) -> Any:
        if name in View.__slots__:
            # As of a copy that is being made.
            raise AttributeError(name)
        value = self._value
        if isinstance(value, dict):
            shape = self._shape
            if shape is not None:
                key = shape.attributes.get(name)
                if key is not None and key in value:
                    return view(value[key], shape.members[key])
                # A text that was written as the schema has it, or a key of a map.
                key = name if name in value else wire_name(name)
            else:
                key = wire_name(name)
                if key not in value:
                    key = self._names().get(name, name)
            if key in value:
                return view(value[key], shape and shape.at(key))
        raise AttributeError(self._absent(name), name=name, obj=self)

    def _absent(self, name: str) -> str:
        shape, value = self._shape, self._value
        if shape is not None and shape.kind == "struct":
            if name in shape.attributes:
                return f"this client does not see {name!r}"
            return f"the state has no {name!r} here; it has {known(name, shape.attributes)}"
        if isinstance(value, list):
            return f"a list has no {name!r}: its elements are in brackets"
        return f"the state has no {name!r} here"

    def __getitem__(self, key: Any) -> Any:
        key = self._key(key)
        if isinstance(key, slice):
            return [view(value, self._shape and self._shape.of) for value in self._value[key]]
        return view(self._value[key], self._shape and self._shape.at(key))

    def __contains__(self, key: Any) -> bool:
        return self._key(key) in self._value

    def _key(self, key: Any) -> Any:
        """The key as it is there: the text of a number stands for the number, and the reverse."""
        if isinstance(self._value, dict) and key not in self._value:
            if isinstance(key, str) and key.removeprefix("-").isdecimal():
                return int(key)
            if isinstance(key, int):
                return str(key)
            if isinstance(key, enum.Enum):
                return wire_name(key.name)
        return key

    def __iter__(self) -> Iterator[Any]:
        if isinstance(self._value, dict):
            return iter(self._value)
        of = self._shape and self._shape.of
        return (view(value, of) for value in self._value)

    def __len__(self) -> int:
        return len(self._value)

    def __eq__(self, other: Any) -> bool:
        return bool(self._value == plain_json(other))

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        """The fields, and the methods that no field hides."""
        found = {name for name in dir(type(self)) if not name.startswith("_")}
        if isinstance(self._value, dict) and not self._is_map():
            found.update(name for name, key in self._names().items() if key in self._value)
        return sorted(found)

    def _is_map(self) -> bool:
        return self._shape is not None and self._shape.kind == "map"

    def _names(self) -> dict[str, str]:
        if self._shape is not None:
            return self._shape.attributes
        return attributes(key for key in self._value if isinstance(key, str))

    def _ipython_key_completions_(self) -> list[Any]:
        return list(self._value) if isinstance(self._value, dict) else []

    def __repr__(self) -> str:
        return json.dumps(self._value, indent=2, ensure_ascii=False, default=repr)

    def plain(self) -> Any:
        """A copy, of dicts and lists, which the program may change. It costs time and memory for all
        that is below."""
        return copy.deepcopy(self._value)


class MapView(View):
    """A view of a map or a set: its keys are in brackets, and it has the methods of a dict."""

    __slots__ = ()

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or ``default``."""
        return self[key] if key in self else default

    def keys(self) -> Any:
        """The keys: ``int`` where the schema says so, else text."""
        return self._value.keys()

    def values(self) -> list[Any]:
        """Views of the values."""
        of = self._shape and self._shape.of
        return [view(value, of) for value in self._value.values()]

    def items(self) -> list[tuple[Any, Any]]:
        """The keys, with views of the values."""
        of = self._shape and self._shape.of
        return [(key, view(value, of)) for key, value in self._value.items()]


class _Fields(View):
    """A view of a struct with a field that has the name of a method: the field comes first."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        return _field_first(self, name)


class _Unknown(MapView):
    """The same of an object that may be a struct or a map: the schema is not known."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        return _field_first(self, name)


def _field_first(of: View, name: str) -> Any:
    if name in _METHODS and name in object.__getattribute__(of, "_value"):
        return of[name]
    return object.__getattribute__(of, name)


_METHODS = frozenset(name for name in dir(MapView) if not name.startswith("_"))


def view(value: Any, shape: Shape | None = None) -> Any:
    """A view of a value, if it has parts."""
    if isinstance(value, list):
        return View(value, shape)
    if not isinstance(value, dict):
        return value
    if shape is None:
        return (MapView if value.keys().isdisjoint(_METHODS) else _Unknown)(value)
    if shape.view is None:
        of_struct = _Fields if "plain" in shape.members else View
        shape.view = MapView if shape.kind == "map" else of_struct
    return shape.view(value, shape)


def plain_json(value: Any) -> Any:
    """The dicts and lists behind a view."""
    return value._value if isinstance(value, View) else value


def plain(value: Any) -> Any:
    """A copy of a view, of dicts and lists, which the program may change: ``plain(room.state)``. What
    is no view is returned as it is. It costs time and memory for all that is below."""
    return copy.deepcopy(value._value) if isinstance(value, View) else value

"""The types of a schema, as the views of a state and the patterns of changes need them."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from ._errors import SchemaError
from ._names import attributes

_INTEGERS = ("player", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")


class Shape:
    """A type: ``kind`` is ``struct``, ``enum``, ``map``, ``list`` or ``value``."""

    __slots__ = ("attributes", "enters", "key", "kind", "members", "of", "view", "word")

    def __init__(self, kind: str, word: str) -> None:
        self.kind = kind
        #: The schema's word for it.
        self.word = word
        #: Whether it may come and go as a whole, where it is.
        self.enters = False
        #: The fields of a struct, or the variants of an enum.
        self.members: dict[str, Shape] = {}
        #: The same names, by those in Python.
        self.attributes: dict[str, str] = {}
        #: What a map or a list is of.
        self.of: Shape | None = None
        #: The type of a map's keys.
        self.key = ""
        #: The class of views of it, once there is one.
        self.view: Any = None

    def at(self, step: Any) -> Shape | None:
        """The type of a member, if it is known."""
        return self.of or self.members.get(step)


class Schema(NamedTuple):
    """What a room needs of its schema: the type of the state, and the names of the events."""

    state: Shape
    events: list[str]


@functools.lru_cache(64)
def schema_of(text: str) -> Schema:
    """A schema, of its JSON. Rooms of one type share it."""
    schema = json.loads(text)
    return Schema(state_shape(schema), [event["name"] for event in schema.get("events", ())])


def state_shape(schema: dict[str, Any]) -> Shape:
    """The type of the state in a node's schema (``docs/protocol.md``, "Schemas")."""
    return _shape(schema["state"], False)


def _shape(of: Any, is_whole: bool) -> Shape:
    """``is_whole``: in an enum, whose JSON has no names for fields without names."""
    if isinstance(of, str):
        return Shape("value", of)
    if "option" in of:
        found = _shape(of["option"], is_whole)
        found.enters = True
        return found
    if "struct" in of:
        return _struct(of["struct"], of["fields"], is_whole)
    if "enum" in of:
        found = Shape("enum", "enum")
        for variant in of["variants"]:
            found.members[variant["name"]] = _struct("variant", variant["fields"], True)
        found.attributes = attributes(found.members)
        return found
    for word in ("list", "array", "map", "set"):
        if word in of:
            is_map = word in ("map", "set")
            found = Shape("map" if is_map else "list", word)
            found.of = Shape("value", "bool") if word == "set" else _shape(of[word], is_whole)
            found.of.enters = True
            found.key = of["set"] if word == "set" else of.get("key", "")
            return found
    return Shape("value", "float")


def _struct(word: str, fields: list[Any], is_whole: bool) -> Shape:
    members = {field["name"]: _shape(field["type"], is_whole) for field in fields}
    for field in fields:
        members[field["name"]].enters |= "policy" in field and not _is_by_entry(field)
    if is_whole and "0" in members:
        # Without names: the field itself, or an array.
        if len(members) == 1:
            return members["0"]
        found = Shape("list", "tuple")
        # Of many types, so nothing is said of them.
        return found
    found = Shape("struct", word)
    found.members, found.attributes = members, attributes(members)
    return found


def _is_by_entry(field: dict[str, Any]) -> bool:
    """Whether the field's policy decides entry by entry: such a map is always there."""
    of = field["type"]
    is_map = isinstance(of, dict) and "map" in of
    return is_map and (field["policy"] == "view" or of.get("key") == "player")


def check_pattern(root: Shape, pattern: str) -> None:
    """Raises :class:`SchemaError` if no change of a state has a path that the pattern matches."""
    if not isinstance(pattern, str):
        raise TypeError(f"a pattern is a text such as players.*.name, not {pattern!r}")
    steps = pattern.split(".")
    why: str | None
    if "**" in steps[:-1]:
        why = '"**" stands for any rest, so only the last step may be it'
    elif "" in steps:
        why = "a step is empty"
    else:
        why = _why_nothing(root, steps, "the state", pattern)
    if why is not None:
        raise SchemaError(f'the pattern "{pattern}" matches nothing: {why}')


def _why_nothing(at: Shape | None, steps: list[str], place: str, pattern: str) -> str | None:
    if at is None or steps[:1] == ["**"]:
        return None
    if not steps:
        if at.enters or at.kind in ("value", "enum"):
            return None
        if at.kind == "struct" and not at.members:
            return f"{place} has nothing in it"
        parts = {"struct": "fields", "map": "entries", "list": "elements"}[at.kind]
        below = f'"{pattern}.*", or "{pattern}.**" for all below'
        return f"what changes are the {parts} of {place}: {below}"
    step, rest = steps[0], steps[1:]
    if at.kind == "value":
        return f"{place} is one value ({at.word}), which has nothing below it"
    if step == "*" and at.kind in ("struct", "enum"):
        reasons = [_why_nothing(of, rest, f"{place}.{n}", pattern) for n, of in at.members.items()]
        if None in reasons:
            return None
        return reasons[0] if reasons else f"{place} has no fields"
    if step != "*":
        if at.kind in ("struct", "enum") and step not in at.members:
            what = "variant" if at.kind == "enum" else "field"
            return f'{place} has no {what} "{step}"; it has {known(step, at.members)}'
        is_number = step.removeprefix("-").isdecimal()
        if at.kind == "list" and not is_number:
            return f'{place} is a {at.word}, whose elements have numbers, or "*" for any'
        if at.kind == "map" and at.key in _INTEGERS and not is_number:
            return f'the keys of {place} are of type {at.key}: write a number, or "*" for any'
    return _why_nothing(
        at.at(step), rest, step if place == "the state" else f"{place}.{step}", pattern
    )


def known(name: str, names: Iterable[str]) -> str:
    """The names that there are, and the one that may have been meant."""
    names = list(names)
    near = difflib.get_close_matches(name, names, 1)
    meant = f'; did you mean "{near[0]}"?' if near else ""
    return (", ".join(names) or "none") + meant

"""The names of a schema, and what they are in Python."""

from __future__ import annotations

import dataclasses
import functools
import keyword
import unicodedata
from collections.abc import Iterable
from typing import Any

# What generated files, and this package, call things.
_TAKEN = ("_abc", "_builtins", "_dataclasses", "_playfield_name", "_typing")


def wire_name(name: str) -> str:
    """The schema's name for a name of Python: ``from_`` stands for ``from``, as keywords can't be
    names. ``generate python`` writes them so: it appends a ``_`` to a keyword, and to a keyword
    with ``_`` behind it, so that each name stands for one."""
    if name.endswith("_") and keyword.iskeyword(name.rstrip("_")):
        return name[:-1]
    return name


def _escaped(name: str) -> str:
    return name + "_" if keyword.iskeyword(name.rstrip("_")) else name


def _attribute(name: str) -> str:
    def may_be(letter: str) -> bool:
        return letter == "_" or (letter.isalnum() if letter.isascii() else letter.isalpha())

    name = "".join(letter if may_be(letter) else "_" for letter in name)
    if not name or name[0].isascii() and name[0].isdigit():
        name = "_" + name
    if name.startswith("__") or name in _TAKEN:
        name = "field" + name
    return _escaped(name)


def attributes(names: Iterable[str]) -> dict[str, str]:
    """The fields of a struct by their names in Python, as ``generate python`` writes them: a
    keyword gets a ``_`` behind it, a leading digit one before it; other characters become ``_``."""
    names = list(names)
    wanted = [(name, _attribute(name)) for name in names]
    taken = {attribute for name, attribute in wanted if attribute == _escaped(name)}
    found = {}
    for name, attribute in wanted:
        if attribute != _escaped(name):
            number, plain = 1, attribute
            while attribute in taken:
                number += 1
                attribute = f"{plain}{number}"
            taken.add(attribute)
        # As Python reads names in programs.
        found[unicodedata.normalize("NFKC", attribute)] = name
    return found


@functools.lru_cache(256)
def fields(kind: Any) -> dict[str, str]:
    """The names of a dataclass's fields, by the schema's. A field may name it in its metadata, as
    generated ones do whose name can't be one of Python."""
    return {
        field.metadata.get("playfield", wire_name(field.name)): field.name
        for field in dataclasses.fields(kind)
    }


def class_name(kind: type) -> str:
    """The schema's name for the message or the event that a class stands for."""
    return getattr(kind, "_playfield_name", None) or wire_name(kind.__name__)


def is_dataclass(value: Any) -> bool:
    """Whether it is a value of a dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)

"""Values as JSON, and JSON as values."""

from __future__ import annotations

import base64
import collections.abc
import dataclasses
import enum
import functools
import json
import logging
import math
import types
import typing
from collections.abc import Callable
from typing import Any

from ._errors import SchemaError
from ._names import fields, is_dataclass, wire_name
from ._view import View, plain_json

log = logging.getLogger("playfield")


def _encode(value: Any) -> Any:
    """What ``json`` does not know: dataclasses, bytes, sets, enums and views."""
    if is_dataclass(value):
        names = fields(type(value))  # type: ignore[arg-type]  # A class can be hashed.
        return {name: getattr(value, field) for name, field in names.items()}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, (set, frozenset)):
        return {str(key): True for key in value}
    if isinstance(value, View):
        return plain_json(value)
    if isinstance(value, enum.Enum):
        return wire_name(value.name)
    raise TypeError(f"a message holds {value!r}, which is no JSON, bytes, set, enum or dataclass")


def dump(value: Any, nothing: bytes = b"null") -> bytes:
    """A value as JSON; ``nothing`` for ``None``."""
    if value is None:
        return nothing
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_encode).encode()


def message(value: Any) -> bytes:
    """A message's fields as JSON, in which NaN and the infinities are texts."""
    try:
        return dump(value)
    except ValueError as error:
        if not str(error).startswith("Out of range"):
            raise
    return dump(_named_floats(value))


def _named_floats(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _named_floats(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_named_floats(part) for part in value]
    if is_dataclass(value):
        return _named_floats(_encode(value))
    return value


def payload(value: Any) -> tuple[bytes, bool]:
    """The payload of a publication or a report, and whether it is bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value), True
    return dump(value), False


def same_kind(what: str, has_bytes: bool | None, is_bytes: bool) -> None:
    """Raises :class:`SchemaError` if a payload is not of the kind that is taken; ``None`` if that is
    not known."""
    if has_bytes is not None and has_bytes != is_bytes:
        kind, given = ("bytes", "a JSON value") if has_bytes else ("JSON values", "bytes")
        raise SchemaError(f"{what} takes {kind}, not {given}")


def load(data: bytes, is_bytes: bool = False) -> Any:
    """What has come: bytes, or JSON."""
    if is_bytes:
        return data
    return json.loads(data) if data else None


def made(kind: Any, value: Any) -> Any:
    """A value of a type: dataclasses are made of dicts, also in sequences, mappings and tuples. What
    the type does not say is left as it is."""
    if typing.get_origin(kind) is not None:
        return _part(kind, value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        make: Any = kind
        if value is None and not fields(kind):
            return make()
        if not isinstance(value, dict):
            return value if isinstance(value, kind) else make(value)
        hints, known = _hints(kind), fields(kind)
        return make(
            **{
                known[name]: _part(hints.get(known[name]), part)
                for name, part in value.items()
                if name in known
            }
        )
    return kind(value)


def _part(kind: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        return made(kind, value) if isinstance(value, dict) else value
    arguments = typing.get_args(kind)
    origin: Any = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        kinds = [of for of in arguments if of is not type(None)]
        return _part(kinds[0], value) if len(kinds) == 1 and value is not None else value
    if not arguments or not isinstance(origin, type):
        return value
    if isinstance(value, list):
        if issubclass(origin, tuple) and arguments[-1] is not Ellipsis:
            return tuple(map(_part, arguments, value))
        if issubclass(origin, collections.abc.Sequence):
            parts = [_part(arguments[0], part) for part in value]
            return tuple(parts) if issubclass(origin, tuple) else parts
    if isinstance(value, dict) and issubclass(origin, collections.abc.Mapping):
        return {key: _part(arguments[-1], part) for key, part in value.items()}
    return value


@functools.lru_cache(256)
def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass's fields, if all their names can be found."""
    try:
        return typing.get_type_hints(kind)
    except Exception:
        log.debug("the types of the fields of %r are unknown", kind, exc_info=True)
        return {}


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the program; its mistakes don't end the session."""
    try:
        result = function(*arguments)
    except Exception:
        log.exception("a callback raised an exception")
        return None
    if isinstance(result, types.CoroutineType):
        result.close()
        log.error("a callback returned a coroutine, which is not awaited: %r", function)
        return None
    return result

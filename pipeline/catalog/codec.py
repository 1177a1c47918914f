"""JSON codec of the catalog's records, each with its format version.

A field's type determines its form: names and numbers unchanged, enums by value, tuples as lists,
dataclasses as objects. A reader accepts every version up to its own and rejects newer ones. Within
a version it ignores unknown fields and sets missing ones to their defaults, so a field with a
default may be added without a new version.
"""

import json
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Any,
    Final,
    NewType,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from pipeline.catalog.records import Record
from pipeline.errors import BrokenInvariantError
from pipeline.formats import NEWEST, WRITTEN, check
from schemas.json_value import Json, JsonObject

R = TypeVar("R", bound=Record)
Stored: TypeAlias = bool | int | str | Enum | tuple["Stored", ...] | None
"""Value of a field."""

_FORMAT: Final = "format"


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def encode(record: Record) -> bytes:
    """Encode as JSON: one line, keys sorted, so that equal records are equal bytes."""
    plain: JsonObject = {_FORMAT: WRITTEN}
    for field in fields(record):
        plain[field.name] = _plain(getattr(record, field.name))
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def decode(kind: type[R], value: bytes, place: str, newest: int = NEWEST) -> R:
    """Decode a record; `place`: its path, for errors; `newest`: the newest format that is read.

    Raises:
        NewerFormatError: a newer version of Medusa wrote it.
        BrokenInvariantError: it is not a valid record of this kind.
    """
    try:
        found = json.loads(value)
        version = _integer(found[_FORMAT])
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(kind, place, "it is not JSON with a format version") from error
    check(version, "record", f"catalog {place}", newest)
    return _record(kind, found, place)


def _record(kind: type[R], found: JsonObject, place: str) -> R:
    hints = _hints(cast("Any", kind))
    values: dict[str, Any] = {}
    for field in fields(kind):
        if field.name not in found:
            if field.default is MISSING and field.default_factory is MISSING:
                raise _damaged(kind, place, f"{field.name} is missing")
            continue
        try:
            values[field.name] = _typed(hints[field.name], found[field.name])
        except (ValueError, TypeError) as error:
            raise _damaged(kind, place, f"{field.name}: {error}") from error
    return kind(**values)


def _plain(value: Stored) -> Json:
    if isinstance(value, Enum):
        plain: Json = value.value
        return plain
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


def _typed(hint: Any, value: Json) -> object:
    """Convert a value to its declared type. Raises ValueError or TypeError if it has another."""
    while isinstance(hint, NewType):
        hint = hint.__supertype__
    origin = get_origin(hint)
    if origin in {Union, UnionType}:
        inner = next(option for option in get_args(hint) if option is not NoneType)
        return None if value is None else _typed(inner, value)
    if origin is tuple:
        return _tuple(get_args(hint), value)
    if issubclass(hint, Enum):
        return hint(value)
    if is_dataclass(hint) or issubclass(hint, tuple):
        return _nested(hint, value)
    if hint is int:
        return _integer(value)
    if not isinstance(value, hint):
        raise TypeError(f"{value!r} is not a {hint.__name__}")
    return value


def _nested(kind: Any, value: Json) -> object:
    """Decode a dataclass or a named tuple."""
    hints = _hints(kind)
    if issubclass(kind, tuple):
        return kind(*_tuple(tuple(hints.values()), value))
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise TypeError(f"{value!r} is not a {kind.__name__}")
    return kind(**{name: _typed(hint, value[name]) for name, hint in hints.items()})


def _tuple(inner: tuple[Any, ...], value: Json) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list")
    if inner[-1] is Ellipsis:
        return tuple(_typed(inner[0], item) for item in value)
    return tuple(_typed(hint, item) for hint, item in zip(inner, value, strict=True))


def _integer(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _damaged(kind: type, place: str, why: str) -> BrokenInvariantError:
    return BrokenInvariantError(
        f"what is stored is not a {kind.__name__}: {why}", place=f"catalog {place}"
    )

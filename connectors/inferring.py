"""A schema for records of which some were seen, as a proposal. Pure.

A field that is missing or null somewhere is nullable. Numbers are `long`, or `double` if one has a
fraction; texts that are all times with a zone are `timestamp-millis`. Of CSV, where every value is
a text, numbers and booleans are recognised if all values are ones.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final

from pipeline.errors import InputError
from schemas.json_value import Json, JsonObject
from schemas.logical import Native
from schemas.types import LONG_MAX, LONG_MIN

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WHOLE: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_FRACTION: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TIMESTAMP: Final[JsonObject] = {"type": "long", "logicalType": "timestamp-millis"}


def inferred(rows: Iterable[Mapping[str, Native]], name: str, *, texts: bool) -> JsonObject:
    """The schema of a record that fits all rows.

    Args:
        rows: some of the records.
        name: of the record.
        texts: whether every value is a text: CSV.

    Raises:
        InputError: there are no rows, or their values of a field have no common type.
    """
    found = list(rows)
    if not found:
        raise InputError("there is no record to infer a schema from")
    return _record(found, name, "", texts=texts)


def _record(
    rows: Sequence[Mapping[str, Native]], name: str, path: str, *, texts: bool
) -> JsonObject:
    names = dict.fromkeys(key for row in rows for key in row)
    fields: list[Json] = []
    for key in names:
        place = f"{path}/{key}"
        if not _NAME.fullmatch(key):
            raise InputError("Avro accepts no such name of a field", place=place)
        values = [row[key] for row in rows if key in row]
        given = [one for one in values if one is not None and not (texts and one == "")]
        known = _of_texts(given) if texts else _of_values(given, f"{name}_{key}", place)
        if len(given) == len(rows):
            fields.append({"name": key, "type": known})
        else:
            fields.append({"name": key, "type": ["null", known], "default": None})
    return {"type": "record", "name": name, "fields": fields}


def _of_texts(values: Sequence[Native]) -> Json:
    """The type of a column of CSV."""
    given = [str(one) for one in values]
    tests: tuple[tuple[Callable[[str], object], Json], ...] = (
        (_WHOLE.fullmatch, "long"),
        (_FRACTION.fullmatch, "double"),
        (lambda text: text.lower() in ("true", "false"), "boolean"),
        (_is_time, _TIMESTAMP),
    )
    for fits, type_ in tests:
        if given and all(fits(one) for one in given):
            return type_
    return "string"


def _of_values(values: Sequence[Native], name: str, path: str) -> Json:
    """The common type of values of JSON; of none it is a text."""
    kinds = {_kind(one) for one in values}
    if kinds <= {"long", "double"} and kinds:
        return "double" if "double" in kinds else "long"
    if len(kinds) > 1:
        raise InputError(
            f"the values have no common type: {', '.join(sorted(kinds))}",
            place=path,
            hint="write the schema by hand; what does not fit it becomes a dead letter.",
        )
    kind = next(iter(kinds), "string")
    if kind == "record":
        return _record([one for one in values if isinstance(one, dict)], name, path, texts=False)
    if kind == "array":
        items = [item for one in values if isinstance(one, list) for item in one]
        present = [item for item in items if item is not None]
        known = _of_values(present, f"{name}_item", f"{path}[]")
        return {"type": "array", "items": known if len(present) == len(items) else ["null", known]}
    if kind == "string" and values and all(_is_time(str(one)) for one in values):
        return _TIMESTAMP
    return kind


def _kind(value: Native) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "long" if LONG_MIN <= value <= LONG_MAX else "double"
        case float() | Decimal():
            return "double"
        case dict():
            return "record"
        case list():
            return "array"
        case _:
            return "string"


def _is_time(text: str) -> bool:
    if "T" not in text:
        return False
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False

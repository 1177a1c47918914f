import json
from decimal import Decimal

import pytest

from connectors.inferring import inferred
from pipeline.errors import InputError
from schemas.avro import parse
from schemas.codec import encode, from_json
from schemas.json_value import JsonObject
from schemas.logical import Native

_LATER = "2026-01-01T00:00:01Z"
TIME: JsonObject = {"type": "long", "logicalType": "timestamp-millis"}


def fields(rows: list[dict[str, Native]], *, texts: bool = False) -> dict[str, object]:
    """Types by field; the schema parses, and all rows fit it."""
    found = inferred(rows, "R", texts=texts)
    assert isinstance(found["fields"], list)
    return {str(f["name"]): f["type"] for f in found["fields"] if isinstance(f, dict)}


def test_values_of_json() -> None:
    """Every row fits the schema, which Avro accepts."""
    rows: list[dict[str, Native]] = [
        {"a": 1, "b": True, "c": "x", "d": 1, "e": {"f": [1, None]}, "at": "2026-01-01T00:00:00Z"},
        {"a": 2, "b": None, "c": "y", "d": Decimal("1.5"), "e": {"g": "h"}, "at": _LATER},
    ]
    found = fields(rows)
    assert found["a"] == "long"
    assert found["b"] == ["null", "boolean"]
    assert found["c"] == "string"
    assert found["d"] == "double"
    assert found["at"] == TIME
    schema = parse(json.dumps(inferred(rows, "R", texts=False)))
    for row in rows:
        encode(schema, from_json(schema, dict(row)))


def test_columns_of_csv() -> None:
    """Types that all values of a column have; an empty one is null."""
    rows: list[dict[str, Native]] = [
        {"n": "1", "x": "1.5", "b": "true", "t": "2026-01-01T00:00:00+01:00", "s": "007", "e": ""},
        {"n": "-2", "x": "2", "b": "FALSE", "t": "2026-01-01T00:00:00Z", "s": "a", "e": ""},
    ]
    assert fields(rows, texts=True) == {
        "n": "long",
        "x": "double",
        "b": "boolean",
        "t": TIME,
        "s": "string",
        "e": ["null", "string"],
    }


def test_what_has_no_type_in_common_is_named() -> None:
    """With its path."""
    with pytest.raises(InputError, match="no common type: long, string") as found:
        fields([{"a": {"b": 1}}, {"a": {"b": "x"}}])
    assert found.value.place == "/a/b"
    with pytest.raises(InputError, match="no such name"):
        fields([{"a b": 1}])
    with pytest.raises(InputError, match="no record"):
        fields([])

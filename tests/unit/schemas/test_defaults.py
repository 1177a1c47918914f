import json
from typing import Any

import pytest

from pipeline.errors import SchemaError
from schemas.avro import parse
from schemas.codec import decode
from schemas.defaults import native_default
from schemas.nesting import MAX_DEPTH
from schemas.types import RecordType


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """A record's JSON value."""
    return {"type": "record", "name": name, "fields": list(fields)}


def nested(depth: int, last: Any = None) -> Any:
    """Records that contain each other as the field n."""
    value = last
    for _ in range(depth):
        value = {"n": value}
    return value


def test_the_depth_of_a_recursive_default() -> None:
    """As deep as types; it can be built and used."""
    chain = record("L", {"name": "n", "type": ["null", "L"]})
    field = {"name": "v", "type": chain, "default": nested(MAX_DEPTH)}
    schema = parse(json.dumps(record("W", field)))
    assert isinstance(schema.root, RecordType)
    assert native_default(schema.root.fields[0], schema.names) == nested(MAX_DEPTH)
    assert decode(parse(json.dumps(record("W"))), schema, b"") == {"v": nested(MAX_DEPTH)}
    field["default"] = nested(MAX_DEPTH + 1)
    with pytest.raises(SchemaError, match="/fields/v/default: the value is nested more than 64"):
        parse(json.dumps(record("W", field)))


def test_cyclic_defaults_are_an_error() -> None:
    """Where they are used: of a field that is missing in its own default."""
    schema = parse(json.dumps(record("L", {"name": "n", "type": "L", "default": {}})))
    assert isinstance(schema.root, RecordType)
    with pytest.raises(SchemaError, match="with the defaults of missing fields it is more than 64"):
        native_default(schema.root.fields[0], schema.names)


def test_a_default_with_many_derivations_is_checked_once() -> None:
    """In a union of records that contain the union again there are two for each level."""
    both = ["A", record("B", {"name": "n", "type": ["A", "B", "null"]}), "null"]
    field = {"name": "v", "type": record("A", {"name": "n", "type": both})}
    wrong = json.dumps(record("W", {**field, "default": nested(MAX_DEPTH, 5)}))
    with pytest.raises(SchemaError, match="is not a default for value of any branch"):
        parse(wrong)
    assert parse(json.dumps(record("W", {**field, "default": nested(MAX_DEPTH)}))).full_name == "W"

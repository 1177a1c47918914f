import json

import pytest
from hypothesis import given

from schemas.avro import AvroSchema, parse
from schemas.compatibility import differences
from schemas.meaning import other_meanings
from tests.unit.schemas.strategies import schemas

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}


def _decimal(precision: int, scale: int) -> object:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def _fixed(scale: int) -> object:
    return {
        "type": "fixed",
        "name": "F",
        "size": 8,
        "logicalType": "decimal",
        "precision": 10,
        "scale": scale,
    }


def _record(of: object) -> AvroSchema:
    fields = [{"name": "a", "type": of}]
    return parse(json.dumps({"type": "record", "name": "R", "fields": fields}))


@pytest.mark.parametrize(
    ("mine", "theirs", "path"),
    [
        (MILLIS, MICROS, "/fields/a/type"),
        (["null", MILLIS], MICROS, "/fields/a/type"),
        (["null", MILLIS], ["null", MICROS], "/fields/a/type"),
        ({"type": "array", "items": MILLIS}, {"type": "array", "items": MICROS}, "/items"),
        ({"type": "map", "values": MILLIS}, {"type": "map", "values": MICROS}, "/values"),
        (_decimal(9, 2), _decimal(9, 3), "/fields/a/type"),
        (_fixed(2), _fixed(3), "/fields/a/type"),
        (MILLIS, {"type": "int", "logicalType": "date"}, "/fields/a/type"),
    ],
)
def test_ignored_differences_of_semantics_are_found(
    mine: object, theirs: object, path: str
) -> None:
    """The path and both types are named, wherever the type is."""
    reader, writer = _record(mine), _record(theirs)
    assert not differences(reader, writer)
    (found,) = other_meanings(reader, writer)
    assert found.partition(":")[0].endswith(path)
    assert "of the writer for" in found


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (MILLIS, "long"),
        ("long", MICROS),
        (_decimal(12, 2), _decimal(9, 2)),
        (["null", MILLIS, "int"], "int"),
        ("string", "bytes"),
    ],
)
def test_equal_or_unspecified_semantics_are_accepted(mine: object, theirs: object) -> None:
    """A reader may add a logical type to plain numbers, and accept more digits."""
    assert other_meanings(_record(mine), _record(theirs)) == ()


def test_recursive_schemas_are_walked_once() -> None:
    """Each place is reported once, however often a record contains itself."""

    def chain(time: object) -> AvroSchema:
        fields = [{"name": "at", "type": time}, {"name": "next", "type": ["null", "Node"]}]
        return parse(json.dumps({"type": "record", "name": "Node", "fields": fields}))

    (found,) = other_meanings(chain(MILLIS), chain(MICROS))
    assert found.startswith("/fields/at/type: ")


def test_fields_are_found_by_their_aliases() -> None:
    """As when values are read."""
    fields = [{"name": "b", "aliases": ["a"], "type": MILLIS}]
    reader = parse(json.dumps({"type": "record", "name": "R", "fields": fields}))
    (found,) = other_meanings(reader, _record(MICROS))
    assert found.startswith("/fields/b/type: ")


@given(schemas())
def test_every_schema_has_equal_semantics_with_itself(schema: AvroSchema) -> None:
    """For any schema."""
    assert other_meanings(schema, parse(" " + schema.text)) == ()

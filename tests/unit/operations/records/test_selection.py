import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from brokers.records import KafkaRecord
from pipeline.errors import InputError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.operations.records.selection import Selector, parse_selection
from schemas.avro import AvroSchema, parse
from schemas.codec import encode
from schemas.wire import join
from tests.unit.deploy.twins import TwinRegistry, World

TOPIC = TopicName("t")
FIELDS: tuple[tuple[str, Any, Any, Any], ...] = (
    ("at", {"type": "long", "logicalType": "timestamp-micros"},
     datetime(2024, 2, 29, 1, 2, 3, 4, UTC), "2024-02-29T01:02:03.000004Z"),
    ("day", {"type": "int", "logicalType": "date"}, date(2024, 2, 29), "2024-02-29"),
    ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
     Decimal("1.50"), "1.50"),
    ("id", {"type": "string", "logicalType": "uuid"}, UUID(int=7),
     "00000000-0000-0000-0000-000000000007"),
    ("raw", "bytes", b"ab", "ab"),
    ("ratio", "float", 0.5, 0.5),
    ("tags", {"type": "array", "items": ["null", "string"]}, ["x", None], ["x", None]),
    ("counts", {"type": "map", "values": "long"}, {"a": 1}, {"a": 1}),
    ("place", ["null", {"type": "record", "name": "Place",
                        "fields": [{"name": "x", "type": "int"}]}], {"x": 3}, {"x": 3}),
    ("missing", ["null", "int"], None, None),
)  # fmt: skip
"""Name, type, value, and how the value is shown."""


def _record_of(*fields: tuple[str, Any]) -> AvroSchema:
    listed = [{"name": name, "type": kind} for name, kind in fields]
    return parse(json.dumps({"type": "record", "name": "R", "fields": listed}))


def _sent(registry: TwinRegistry, schema: AvroSchema, value: Any) -> KafkaRecord:
    schema_id = registry.register("t-value", schema.text)
    body = join(schema_id, encode(schema, value))
    return KafkaRecord(TOPIC, 0, Offset(0), Millis(0), None, body)


SCHEMA = _record_of(*((name, kind) for name, kind, _, _ in FIELDS))
VALUE = {name: value for name, _, value, _ in FIELDS}


def _value(*select: str) -> Any:
    registry = World.new().registry
    record = _sent(registry, SCHEMA, VALUE)
    return Selector(registry, parse_selection(SCHEMA, None, select)).decode(record).value


def test_every_type_of_column_is_shown_as_without_a_selection() -> None:
    """A column that is only projected is unchanged."""
    shown = {name: text for name, _, _, text in FIELDS}
    assert _value(",".join(shown)) == shown


def test_parts_and_computed_columns() -> None:
    """A part has its own name; commas inside an expression do not separate columns."""
    assert _value("place.x", "n=coalesce(missing, counts['a'], 0), t=tags[0]") == {
        "x": 3,
        "n": 1,
        "t": "x",
    }
    assert _value("later=at + INTERVAL 1 DAY", "double=price * 2") == {
        "later": "2024-03-01T01:02:03.000004Z",
        "double": "3.00",
    }


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("at > TIMESTAMP '2024-02-29' AND day = DATE '2024-02-29'", True),
        ("id = '00000000-0000-0000-0000-000000000007'", True),
        ("price = 1.5 AND ratio = 0.5", True),
        ("array_contains(tags, 'y')", False),
        ("missing = 1", False),
        ("missing IS NULL AND place.x = 3", True),
        ("counts['b'] IS NULL", True),
    ],
)
def test_conditions_have_values_of_every_type(where: str, *, expected: bool) -> None:
    """Null is not true."""
    registry = World.new().registry
    record = _sent(registry, SCHEMA, VALUE)
    selector = Selector(registry, parse_selection(SCHEMA, where, ()))
    assert selector.matches(record) is expected
    assert selector.undecided == 0


def test_records_of_an_earlier_schema_are_read_with_the_newest() -> None:
    """A whole number is promoted to a double, and an added field has its default."""
    registry = World.new().registry
    record = _sent(registry, _record_of(("n", "int")), {"n": 3})
    text = json.dumps(
        {
            "type": "record",
            "name": "R",
            "fields": [
                {"name": "n", "type": "double"},
                {"name": "unit", "type": "string", "default": "kg"},
            ],
        }
    )
    selector = Selector(
        registry,
        parse_selection(parse(text), "n / 2 = 1.5D AND unit = 'kg'", ("half=n / 2", "unit")),
    )
    assert selector.matches(record)
    assert selector.decode(record).value == {"half": 1.5, "unit": "kg"}


def test_a_field_that_is_no_column_is_an_error_with_its_type() -> None:
    """As in a box."""
    schema = _record_of(("x", ["int", "string"]), ("y", "int"))
    with pytest.raises(InputError, match="column x cannot be used: it holds a union"):
        parse_selection(schema, "x = 1", ())

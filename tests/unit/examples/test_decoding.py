from collections.abc import Mapping

import pytest

from brokers.records import KafkaRecord
from pipeline.errors import BrokenInvariantError
from pipeline.examples.decoding import Decoding
from pipeline.ids import Millis, Offset, SchemaHandle, SchemaId, TopicName
from pipeline.reference.inputs import InputRecord, Place
from schemas.avro import AvroSchema, parse
from schemas.codec import encode
from schemas.wire import join

FIRST = parse("""{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}""")
SECOND = parse("""{"type": "record", "name": "R", "fields": [
    {"name": "n", "type": "int"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 7}]}""")
SCHEMAS: Mapping[SchemaHandle, AvroSchema] = {SchemaId(1): FIRST, SchemaId(2): SECOND}
DECODING = Decoding(SCHEMAS.get)


def record(value: bytes | None) -> KafkaRecord:
    """A record with a value."""
    return KafkaRecord(TopicName("t"), 1, Offset(5), Millis(0), None, value)


def framed(schema_id: int, schema: AvroSchema, value: object) -> bytes:
    """A value in the wire format of a producer."""
    return join(SchemaId(schema_id), encode(schema, value))


def test_an_input_is_read_with_the_schema_of_the_network() -> None:
    """An older schema gets the defaults of the newer one; instants are ms."""
    given = DECODING.given(record(framed(1, FIRST, {"n": 3})), SECOND)
    assert given == InputRecord(Place("t", 1, 5), {"n": 3, "at": 7})


@pytest.mark.parametrize(
    "value", [None, b"", b"plain text", join(SchemaId(9), b"\2"), join(SchemaId(1), b"")]
)
def test_an_unreadable_input_has_no_fields(value: bytes | None) -> None:
    """No value, no frame, an unregistered schema, or bytes of another schema."""
    assert DECODING.given(record(value), SECOND) == InputRecord(Place("t", 1, 5), None)


def test_an_unreadable_result_is_a_defect() -> None:
    """Each result is framed, and its schema is registered."""
    assert DECODING.result(record(framed(1, FIRST, {"n": 3}))) == {"n": 3}
    with pytest.raises(BrokenInvariantError, match="a result cannot be read"):
        DECODING.result(record(b"x"))
    with pytest.raises(BrokenInvariantError, match="no schema with id 9"):
        DECODING.result(record(join(SchemaId(9), b"")))

from dataclasses import replace

import pytest

from pipeline.ids import Millis, SchemaGuid, SchemaId
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.spark.query.hidden import Failed
from pipeline.spark.query.lower import lower, with_decoded_mark
from pipeline.spark.query.lowered import EventTime, Source, WriterSchema
from pipeline.spark.query.reasons import Judged, Why, why
from schemas import avro, codec, wire
from tests.unit.spark.support import SCHEMA, fragment, lowering_context

NOW = Millis(1_700_000_000_000)
GOOD = wire.join(SchemaId(1), codec.encode(avro.parse(SCHEMA), {"car": "A1"}))


def source() -> Source:
    """The sightings, written with schema 1."""
    planned = fragment("tolls")
    (found,) = lower(planned, lowering_context(planned)).sources
    time = EventTime("x", "y", 3_600_000, "to_timestamp(at)")
    return replace(found, reader_json=with_decoded_mark(SCHEMA), event_time=time)


def described(reason: Reason, value: bytes | None = GOOD, **more: Millis | None) -> Why:
    """The reason of a record."""
    times: dict[str, Millis | None] = {"event_time_ms": None, "late_ms": None, **more}
    found = Judged(reason.value, value, (), NOW, times["event_time_ms"], times["late_ms"])
    return why(found, source())


def test_an_expression_is_named_as_in_the_document() -> None:
    """Box, field and text, also where the text contains colons."""
    word = str(Failed("tolls", "select.toll", "CAST(a AS MAP<INT:INT>) / 0"))
    found = why(Judged(word, GOOD, (), NOW, NOW, None), source())
    assert (found.box, found.field) == ("tolls", "select.toll")
    assert found.message == "select.toll cannot be computed: CAST(a AS MAP<INT:INT>) / 0"


@pytest.mark.parametrize(
    ("reason", "value", "message"),
    [
        (Reason.EMPTY_VALUE, None, "the value is empty"),
        (Reason.NOT_WIRE_FORMAT, b"text", "does not begin with the zero byte"),
        (Reason.NOT_WIRE_FORMAT, b"\0\1", "shorter than the prefix"),
    ],
)
def test_a_value_outside_of_the_wire_format_has_a_reason(
    reason: Reason, value: bytes | None, message: str
) -> None:
    """Without a schema."""
    found = described(reason, value)
    assert message in found.message
    assert found.schema is None


def test_a_missing_schema_is_named() -> None:
    """Its id is needed to find it."""
    found = described(Reason.SCHEMA_NOT_FOUND, b"\0\0\0\0\x2a")
    assert found.schema == 42
    assert found.message == "the registry has no schema with id 42"


def test_a_schema_in_a_header_is_named() -> None:
    """The value is the body alone, and its first byte has no meaning."""
    guid = SchemaGuid("095d71cf-1255-6b9d-5e33-0ad575b3df5d")
    headers = ((wire.Part.VALUE.value, wire.prefix(guid)),)
    judged = Judged(Reason.SCHEMA_NOT_FOUND.value, b"x", headers, NOW, None, None)
    found = why(judged, source())
    assert found.schema == guid
    assert found.message == f"the registry has no schema with GUID {guid}"


def test_an_undecodable_value_has_the_message_of_the_decoder() -> None:
    """From decoding it once more, with the schema of the writer."""
    found = described(Reason.UNDECODABLE, GOOD[:-1])
    assert found.schema == 1
    assert found.message.startswith("the bytes are no S: ")


def test_a_value_that_only_spark_refuses_is_reported_so() -> None:
    """Decoding once more may succeed."""
    assert "Spark" in described(Reason.UNDECODABLE, GOOD).message


def test_a_writer_schema_with_other_semantics_is_reported() -> None:
    """The schema itself is the reason."""
    unfit = replace(source(), writers=(WriterSchema(SchemaId(1), SCHEMA, "in other units"),))
    judged = Judged(Reason.UNDECODABLE.value, GOOD, (), NOW, None, None)
    assert why(judged, unfit).message == "in other units"


def test_event_times_are_reported() -> None:
    """The expression where there is no time, else the time, also one outside of the calendar."""
    assert described(Reason.EVENT_TIME_FAILED).message == (
        "event_time cannot be computed: to_timestamp(at)"
    )
    assert described(Reason.EVENT_TIME_MISSING).message == "event_time is null: to_timestamp(at)"
    ahead = described(Reason.EVENT_TIME_AHEAD, event_time_ms=Millis(1_800_000_000_000))
    assert ahead.event_time_ms == 1_800_000_000_000
    assert ahead.message == (
        "event time 2027-01-15T08:00:00Z is more than 1h ahead of the record's Kafka timestamp "
        "2023-11-14T22:13:20Z"
    )
    far = described(Reason.EVENT_TIME_AHEAD, event_time_ms=Millis(1_700_000_000_000_000))
    assert "1700000000000000 ms" in far.message


def test_a_late_record_has_its_time_and_the_closed_time() -> None:
    """Both as text and as numbers."""
    found = described(Reason.LATE, event_time_ms=Millis(1_000), late_ms=Millis(61_000))
    assert (found.event_time_ms, found.closed_ms) == (1_000, 61_000)
    assert found.message == (
        "event time 1970-01-01T00:00:01Z came when everything up to 1970-01-01T00:01:01Z was closed"
    )


def test_a_partly_late_record_has_the_note_that_it_counts_in_other_windows() -> None:
    """Its times are reported as those of a late one."""
    found = described(Reason.PARTLY_LATE, event_time_ms=Millis(1_000), late_ms=Millis(61_000))
    assert (found.reason, found.closed_ms) == (Reason.PARTLY_LATE, 61_000)
    assert found.message.endswith(": it counts only in those of its windows that end later")


def test_every_reason_has_a_text() -> None:
    """None is missing."""
    values = {Reason.EMPTY_VALUE: None, Reason.NOT_WIRE_FORMAT: b"x"}
    assert all(described(reason, values.get(reason, GOOD)).message for reason in Reason)

from dataclasses import replace
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.dead_letters.letter import UNKNOWN, Letter, Place, read
from pipeline.errors import NewerFormatError
from pipeline.ids import Millis, Offset, SchemaGuid, SchemaId, TopicName
from pipeline.lanes.dead_letters import REDRIVEN_ORIGIN
from tests.unit.dead_letters.support import NOW, letter


def test_what_a_lane_wrote_is_read_back() -> None:
    """Each header has its field; fields without a header are None."""
    found = letter(3, reason="schema_not_found", schema=SchemaId(9), attempt=2, field="where")
    assert (found.number, found.reason, found.schema) == ((0, 3), "schema_not_found", 9)
    assert (found.box, found.field, found.input, found.port) == ("moving", "where", "sightings", "")
    assert found.at == Place(TopicName("car-sightings"), 1, Offset(103))
    assert (found.first, found.attempt, found.version) == (found.at, 2, 1)
    assert (found.event_time_ms, found.closed_ms) == (None, None)


def test_a_schema_is_an_id_or_a_guid() -> None:
    """As in the record; a header with anything else counts as missing."""
    guid = SchemaGuid("095d71cf-1255-6b9d-5e33-0ad575b3df5d")
    assert letter(3, reason="schema_not_found", schema=guid).schema == guid
    strange = (("medusa.error.schema", b"seven"),)
    assert read(KafkaRecord(TopicName("t"), 0, Offset(0), NOW, None, None, strange)).schema is None


def test_the_original_keeps_its_headers_and_its_first_place() -> None:
    """For a redriven record, the redrive topic is only its latest place."""
    original = (("a", b"1"), ("a", None), (REDRIVEN_ORIGIN, b"car-sightings/1/7"))
    found = letter(0, original, topic=TopicName("cars.moving.redrive"))
    assert found.original_headers == (("a", b"1"), ("a", None))
    assert found.first == Place(TopicName("car-sightings"), 1, Offset(7))


def test_a_record_that_no_lane_wrote_is_of_unknown_reason() -> None:
    """Any headers can be parsed."""
    strange = (("medusa.error.offset", b"many"), (REDRIVEN_ORIGIN, b"x/y"), ("b", b"\xff"))
    found = read(KafkaRecord(TopicName("t"), 0, Offset(0), NOW, None, None, strange))
    assert (found.reason, found.at, found.first, found.attempt) == (UNKNOWN, None, None, 1)


def test_a_letter_of_a_newer_version_is_refused() -> None:
    """Its headers may mean something else; sending it again could do harm."""
    record = letter(5, ()).record
    newer = replace(record, headers=(("medusa.error.format", b"2"),))
    with pytest.raises(NewerFormatError, match="format 2") as caught:
        read(newer)
    assert f"offset {record.offset}" in caught.value.place


def test_a_failed_result_has_no_place() -> None:
    """It was computed from several records."""
    found = letter(input=None, topic=None, partition=None, offset=None)
    assert (found.at, found.first, found.input) == (None, None, "")


def test_the_originals_timestamp_is_in_a_header() -> None:
    """The record's own is the append time; for a record of another program it is both."""
    found = letter(time=NOW, appended=Millis(NOW + 86_400_000))
    assert (found.timestamp_ms, found.appended_ms) == (NOW, NOW + 86_400_000)
    strange = KafkaRecord(TopicName("t"), 0, Offset(0), NOW, None, None, ())
    assert (read(strange).timestamp_ms, read(strange).appended_ms) == (NOW, NOW)


def test_a_failed_result_may_name_the_record_of_its_row() -> None:
    """A header has the first place of that record after a redrive."""
    of_row = {
        **dict.fromkeys(("topic", "partition", "offset")),
        "row": "car-sightings/1/7", "held": b"\xff", "held_by": "1:a",
    }  # fmt: skip
    found = letter(**of_row)
    assert (found.at, found.row, found.first) == (None, found.place, found.place)
    assert found.place == Place(TopicName("car-sightings"), 1, Offset(7))
    assert (found.held, found.held_by, found.topic_id) == (b"\xff", "1:a", "id of car-sightings")
    assert found.redrive_record == found.record
    first = letter(**of_row, first="car-sightings/0/3").first
    assert first == Place(TopicName("car-sightings"), 0, Offset(3))
    strange = letter(**{**of_row, "row": "nowhere"})
    assert (strange.row, strange.place) == (None, None)


def failed_result(value: bytes | None, **more: Any) -> Letter:
    """A letter of a result that could not be computed."""
    facts = {
        "reason": "evaluation_failed",
        "field": "compute.mean",
        "message": "compute.mean cannot be computed: a / b",
        **dict.fromkeys(("input", "topic", "partition", "offset")),
        **more,
    }
    return read(replace(letter(**facts).record, value=value))


def test_a_failed_result_has_its_expression_and_its_values() -> None:
    """The values keep their JSON types."""
    found = failed_result(b'{"road":"A1","a":1,"b":0.10}')
    assert found.expression == "a / b"
    assert found.computed_from == {"road": "A1", "a": 1, "b": 0.1}


@pytest.mark.parametrize(
    ("value", "more"),
    [
        (b"{", {}),
        (b"[1]", {}),
        (b"\xff", {}),
        (None, {}),
        (b'{"a":1}', {"message": "the writer says nothing that is known"}),
        (b'{"a":1}', {"topic": TopicName("t"), "partition": 0, "offset": Offset(1)}),
    ],
)
def test_what_is_no_failed_result_has_no_such_values(
    value: bytes | None, more: dict[str, Any]
) -> None:
    """A record is never parsed as one, whatever its bytes are."""
    assert failed_result(value, **more).computed_from is None

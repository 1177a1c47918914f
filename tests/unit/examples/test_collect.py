import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from brokers.records import Headers, KafkaRecord
from pipeline.errors import BrokenInvariantError
from pipeline.examples.collect import Collected, Watched
from pipeline.examples.tolls import NOTIFICATIONS, TOLLS
from pipeline.ids import Epoch, FragmentName, Millis, Offset, TopicId, TopicName
from pipeline.markers.codec import encode_boundary
from pipeline.markers.signals import BoundaryRecord
from pipeline.reference.inputs import Place, Refusal

WATCHED = Watched(
    outputs=dict(zip((TopicName("notes"), TopicName("tows")), TOLLS.results, strict=True)),
    dead_letters={TopicName("local.tolls.moving.dlq"): FragmentName("moving")},
)


def decode(record: KafkaRecord) -> Mapping[str, Any]:
    """The tests' values are JSON; instants are ms, converted to the types of Avro."""
    fields = json.loads(record.value or b"")
    return {
        name: datetime.fromtimestamp(value / 1_000, UTC) if name.endswith("_at") else value
        for name, value in fields.items()
    }


def record(topic: str, value: bytes, headers: Headers = ()) -> KafkaRecord:
    """A record at some place of a topic."""
    return KafkaRecord(TopicName(topic), 0, Offset(7), Millis(0), None, value, headers)


def promise(topic: str, writer: str, at_ms: int) -> KafkaRecord:
    """A boundary record for an output."""
    boundary = BoundaryRecord(TopicId("an id"), writer, Epoch(1), Millis(at_ms), {0: Offset(1)})
    return record(f"{topic}.boundaries", encode_boundary(boundary))


def test_a_notification_becomes_a_row_in_the_order_of_the_reference() -> None:
    """Fields are sorted, and instants become ms."""
    collected = Collected(WATCHED, decode)
    value = {"seen_at": 12_345, "toll": 200.0, "segment": 2, "car": "car-1"}
    collected.take(record("notes", json.dumps(value).encode()))
    assert collected.rows[NOTIFICATIONS] == [("car-1", 200.0, 2, 12_345)]
    assert collected.newest == ["00:00:12  car-1 pays 200.0 on segment 2"]


def test_an_instant_between_two_milliseconds_stays_wrong() -> None:
    """An extra microsecond is not rounded away before the comparison."""
    collected = Collected(WATCHED, lambda _: {
        "car": "a", "toll": 0.0, "segment": 1, "seen_at": datetime(1970, 1, 1, 0, 0, 0, 1001, UTC),
    })  # fmt: skip
    collected.take(record("notes", b"x"))
    assert collected.rows[NOTIFICATIONS] == [("a", 0.0, 1, 1.001)]


def test_a_result_with_other_fields_is_refused() -> None:
    """A missing or an additional field is not ignored."""
    collected = Collected(WATCHED, decode)
    with pytest.raises(BrokenInvariantError, match="instead of car, toll, segment, seen_at"):
        collected.take(record("notes", b'{"car": "a"}'))


def test_a_dead_letter_is_kept_with_its_context() -> None:
    """Medusa's headers are read and displayed, those of the producer are not."""
    collected = Collected(WATCHED, decode)
    facts = {"reason": "late", "port": "left", "topic": "cars", "partition": "1", "offset": "5"}
    headers = (("trace", b"1"), *((f"medusa.error.{n}", v.encode()) for n, v in facts.items()))
    collected.take(record("local.tolls.moving.dlq", b"x", headers))
    text = (
        "local.tolls.moving.dlq, offset 7: reason=late, port=left, topic=cars, partition=1, "
        "offset=5"
    )
    assert collected.refusals == [Refusal("moving", Place("cars", 1, 5), "left", "late", text)]


def test_a_failed_result_has_no_place() -> None:
    """It has no single record."""
    collected = Collected(WATCHED, decode)
    collected.take(record("local.tolls.moving.dlq", b"", (("medusa.error.reason", b"failed"),)))
    assert [(r.place, r.reason) for r in collected.refusals] == [(None, "failed")]


@pytest.mark.parametrize(
    "headers", [(), (("medusa.error.reason", b"late"), ("medusa.error.offset", b"many"))]
)
def test_a_foreign_record_in_a_dead_letter_topic_is_a_defect(headers: Headers) -> None:
    """It is not skipped."""
    with pytest.raises(BrokenInvariantError, match="no dead letter of ours"):
        Collected(WATCHED, decode).take(record("local.tolls.moving.dlq", b"x", headers))


def test_outputs_are_complete_up_to_the_least_promise_of_all_writers() -> None:
    """Every output counts, up to its slowest writer; without a promise it is not complete."""
    collected = Collected(WATCHED, decode)
    assert collected.complete_until() is None
    collected.take(promise("notes", "one", 50))
    assert collected.complete_until() is None
    collected.take(promise("tows", "one", 90))
    assert collected.complete_until() == 50
    collected.take(promise("notes", "two", 40))
    collected.take(promise("notes", "one", 95))
    assert collected.complete_until() == 40
    collected.take(promise("notes", "two", 99))
    assert collected.complete_until() == 90


def test_only_the_newest_lines_are_kept() -> None:
    """The display is bounded, the comparison is complete."""
    collected = Collected(WATCHED, decode)
    for n in range(100):
        value = {"car": f"car-{n}", "toll": 0.0, "segment": 1, "seen_at": 0}
        collected.take(record("notes", json.dumps(value).encode()))
    assert len(collected.rows[NOTIFICATIONS]) == 100
    assert len(collected.newest) == 20
    assert "car-99" in collected.newest[-1]


def test_the_results_of_each_kind_are_counted() -> None:
    """In the order of the example."""
    collected = Collected(WATCHED, decode)
    value = {"seen_at": 12_345, "toll": 200.0, "segment": 2, "car": "car-1"}
    collected.take(record("notes", json.dumps(value).encode()))
    assert collected.counts() == "1 toll notifications, 0 tow dispatches"

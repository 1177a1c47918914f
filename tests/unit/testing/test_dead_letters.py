from dataclasses import replace

import pytest

from brokers.records import KafkaRecord
from pipeline.dead_letters.letter import Letter, Place
from pipeline.ids import Millis, Offset, TopicName
from pipeline.testing.dead_letters import comparable


def dead_letter(reason: str, box: str, field: str, offset: int) -> Letter:
    """A fragment's dead letter of the record at offset 3."""
    record = KafkaRecord(TopicName(f"n.{box}.dlq"), 0, Offset(offset), Millis(0), None, b"", ())
    at = Place(TopicName("cars"), 0, Offset(3))
    return Letter(
        record,
        Millis(0),
        reason,
        "why",
        box,
        field,
        "cars",
        "cars/0",
        "",
        at,
        None,
        None,
        None,
        None,
        1,
        1,
    )


@pytest.mark.parametrize(
    ("reason", "field", "count"),
    [
        ("late", "", 1),
        ("event_time_before_1970", "event_time", 1),
        ("event_time_failed", "event_time", 1),
        ("evaluation_failed", "where", 2),
    ],
)
def test_refusals_of_one_record_for_one_reason_count_once(
    reason: str, field: str, count: int
) -> None:
    """Unless a box refuses it: another box makes another dead letter."""
    found = comparable(
        (dead_letter(reason, box, field, n), None, None) for n, box in enumerate("ab")
    )
    assert len(found) == count
    assert ("box" in found[0].value) == (count > 1)


def test_a_failed_result_has_its_values() -> None:
    """Side by side, as the fields of a record."""
    one = dead_letter("evaluation_failed", "b", "compute.x", 0)
    record = replace(one.record, value=b'{"road":"A1","sum(n)":0.5}')
    message = "compute.x cannot be computed: 1 / sum(n)"
    failed = replace(one, record=record, at=None, message=message)
    (found,) = comparable([(failed, None, None)])
    assert (found.value["values.road"], found.shown["values.sum(n)"]) == ("A1", 0.5)
    (other,) = comparable([(replace(failed, at=one.at), None, None)])
    assert not [name for name in other.value if name.startswith("values")]

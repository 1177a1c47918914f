"""How many records a batch may read."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import Offset, StreamName, TopicName
from pipeline.lanes.batch_size import (
    BYTES_PER_BATCH,
    OFFSETS_PER_SAMPLE,
    RECORDS_PER_BATCH,
    SAMPLES_MAX,
    records_at_once,
    sample_offsets,
    too_many,
)
from pipeline.markers.positions import InputPartition

TOPIC = TopicName("cars")
AT = InputPartition(StreamName("cars"), TOPIC, 0)
DONE = InputPartition(StreamName("cars"), TOPIC, 1)
GONE = InputPartition(StreamName("cars"), TopicName("gone"), 0)


@given(start=st.integers(0, 10_000), ahead=st.integers(1, 30_000))
def test_places_lie_ahead(start: int, ahead: int) -> None:
    """The first is the next record; none lies at the end or beyond; what is read has none.

    Little that lies ahead is looked at in fewer places.
    """
    known = {AT: Offset(start), DONE: Offset(7), GONE: Offset(3)}
    found = list(sample_offsets(known, {TOPIC: {0: Offset(start + ahead), 1: Offset(7)}}))
    assert len(found) == min(SAMPLES_MAX, -(-ahead // OFFSETS_PER_SAMPLE))
    assert found[0] == {AT: start}
    assert all(place.keys() == {AT} and start <= place[AT] < start + ahead for place in found)
    assert list(sample_offsets(known, {TOPIC: {0: Offset(start), 1: Offset(5)}})) == []


@given(sizes=st.lists(st.floats(1, 100_000_000), min_size=1))
def test_a_batch_holds_so_many_bytes_and_at_least_one_record(sizes: list[float]) -> None:
    """The largest records that were seen decide."""
    most = records_at_once(sizes)
    assert 1 <= most <= RECORDS_PER_BATCH
    assert most == 1 or most * max(sizes) <= BYTES_PER_BATCH


def test_where_nothing_was_seen_the_number_of_records_decides() -> None:
    """Nothing lies ahead, or records without a byte."""
    assert records_at_once(()) == records_at_once([0.0]) == RECORDS_PER_BATCH


def test_a_planned_batch_is_too_large_when_it_reads_far_more_than_fits() -> None:
    """All partitions together; of one that it does not know yet, nothing."""
    start = {AT: Offset(100)}
    assert not too_many(start, {AT: Offset(120)}, 10)
    assert too_many(start, {AT: Offset(121)}, 10)
    assert too_many({**start, DONE: Offset(0)}, {AT: Offset(110), DONE: Offset(11)}, 10)
    assert not too_many(start, {AT: Offset(110), DONE: Offset(11)}, 10)
    assert not too_many(start, {AT: Offset(90)}, 1)

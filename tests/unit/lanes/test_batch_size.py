"""Limits of a batch's size."""

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


@given(start=st.integers(0, 10_000), count=st.integers(1, 30_000))
def test_sample_offsets_are_unread_records(start: int, count: int) -> None:
    """The first is the next record; none is at the end or beyond; a finished partition has none.

    A short backlog is sampled at fewer offsets.
    """
    positions = {AT: Offset(start), DONE: Offset(7), GONE: Offset(3)}
    found = list(sample_offsets(positions, {TOPIC: {0: Offset(start + count), 1: Offset(7)}}))
    assert len(found) == min(SAMPLES_MAX, -(-count // OFFSETS_PER_SAMPLE))
    assert found[0] == {AT: start}
    assert all(place.keys() == {AT} and start <= place[AT] < start + count for place in found)
    assert list(sample_offsets(positions, {TOPIC: {0: Offset(start), 1: Offset(5)}})) == []


@given(sizes=st.lists(st.floats(1, 100_000_000), min_size=1))
def test_a_batch_has_a_byte_limit_and_at_least_one_record(sizes: list[float]) -> None:
    """The largest sampled records determine the number of records."""
    most = records_at_once(sizes)
    assert 1 <= most <= RECORDS_PER_BATCH
    assert most == 1 or most * max(sizes) <= BYTES_PER_BATCH


def test_without_samples_the_record_limit_applies() -> None:
    """There is no backlog, or its records have no bytes."""
    assert records_at_once(()) == records_at_once([0.0]) == RECORDS_PER_BATCH


def test_a_planned_batch_is_too_large_far_above_the_limit() -> None:
    """All partitions together; a partition without sample counts as 0."""
    start = {AT: Offset(100)}
    assert not too_many(start, {AT: Offset(120)}, 10)
    assert too_many(start, {AT: Offset(121)}, 10)
    assert too_many({**start, DONE: Offset(0)}, {AT: Offset(110), DONE: Offset(11)}, 10)
    assert not too_many(start, {AT: Offset(110), DONE: Offset(11)}, 10)
    assert not too_many(start, {AT: Offset(90)}, 1)

"""Bytes of the records between two positions."""

import pytest

from pipeline.ids import Offset, StreamName, TopicName
from pipeline.markers.positions import InputPartition, Positions
from pipeline.metering.record_sizes import bytes_read

IN, OTHER = TopicName("in"), TopicName("other")


def at(**offsets: int) -> Positions:
    """Positions in one partition of each topic."""
    return {
        InputPartition(StreamName(topic), TopicName(topic), 0): Offset(offset)
        for topic, offset in offsets.items()
    }


def test_records_are_divided_by_offsets_and_have_the_mean_size_of_their_topic() -> None:
    """Ten offsets without a record, as of transactions, are of all topics."""
    found = bytes_read(
        90, at(**{"in": 0, "other": 100}), at(**{"in": 75, "other": 125}), {IN: 10.0, OTHER: 2.0}
    )
    assert found == (round(67.5 * 10 + 22.5 * 2), {})


def test_records_of_a_topic_without_a_size_are_returned() -> None:
    """They are counted once it is known."""
    sized, unsized = bytes_read(
        10, at(**{"in": 0, "other": 0}), at(**{"in": 5, "other": 5}), {IN: 8.0}
    )
    assert (sized, unsized) == (40, {OTHER: 5.0})


@pytest.mark.parametrize(("records", "end"), [(0, {"in": 9}), (5, {"in": 3}), (5, {"other": 9})])
def test_nothing_was_read(records: int, end: dict[str, int]) -> None:
    """No records, no offsets, or a partition that is new."""
    assert bytes_read(records, at(**{"in": 3}), at(**end), {IN: 1.0}) == (0, {})

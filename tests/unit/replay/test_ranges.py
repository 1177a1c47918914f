import pytest

from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, StreamName, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.replay.ranges import PartitionLog, Range, may_lack, ranges


def log(
    start: int, end: int, since: int, oldest: int | None = None, reach: int = 0
) -> PartitionLog:
    """The log of partition 2 of a topic."""
    at = InputPartition(StreamName("sightings"), TopicName("car-sightings"), 2)
    time = None if oldest is None else Millis(oldest)
    return PartitionLog(at, Offset(start), Offset(end), Offset(since), time, reach)


def test_a_partition_is_read_from_the_first_needed_record_to_its_end() -> None:
    """Late records may be at any offset after it."""
    (found,) = ranges([log(0, 10, 4)], incomplete=False)
    assert (found.start, found.end, found.offsets, found.gone) == (4, 10, 6, False)
    assert found.contains(TopicName("car-sightings"), 2, Offset(4))
    assert not found.contains(TopicName("car-sightings"), 2, Offset(10))
    assert not found.contains(TopicName("car-sightings"), 1, Offset(4))


@pytest.mark.parametrize(
    ("one", "lacks"),
    [(log(0, 9, 0), False), (log(5, 9, 6), False), (log(5, 9, 5), True), (log(5, 5, 5), True)],
    ids=["whole log", "older record left", "all left is needed", "emptied"],
)
def test_records_may_be_gone_only_if_no_older_one_remains(
    one: PartitionLog, *, lacks: bool
) -> None:
    """If an older record remains, no record after it is deleted."""
    assert may_lack(one) == lacks


def test_missing_records_are_refused_with_the_place_and_the_choices() -> None:
    """The first complete time follows from the oldest record and the reach of results."""
    with pytest.raises(RefusedError) as refused:
        ranges([log(5, 9, 5, oldest=60_000, reach=9_999)], incomplete=False)
    error = refused.value
    assert error.place == "topic car-sightings, partition 2"
    assert "begins at offset 5, whose record has the time 1970-01-01T00:01:00Z" in error.message
    assert "begin after 1970-01-01T00:01:10Z" in error.hint
    assert "--incomplete" in error.hint


def test_the_error_for_an_emptied_partition_names_no_time() -> None:
    """There is no time from which on it is complete."""
    with pytest.raises(RefusedError) as refused:
        ranges([log(5, 5, 5), log(0, 3, 0)], incomplete=False)
    assert "holds no record" in refused.value.message
    assert "begin after" not in refused.value.hint


def test_on_request_the_remaining_records_are_read_and_marked() -> None:
    """Partitions without deleted records are not marked."""
    found = ranges([log(5, 9, 5, oldest=1), log(0, 3, 1)], incomplete=True)
    assert [(one.start, one.gone) for one in found] == [(5, True), (1, False)]


def test_nothing_to_read_is_refused() -> None:
    """There would be no result."""
    with pytest.raises(RefusedError, match="hold no records"):
        ranges([log(0, 9, 9)], incomplete=False)


def test_an_empty_range_has_no_offsets() -> None:
    """Never a negative number."""
    at = (StreamName("s"), TopicName("t"), 0)
    assert Range(*at, Offset(5), Offset(3), gone=False).offsets == 0

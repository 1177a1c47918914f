from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.batch import BatchFacts, Written, is_repeat, next_marker
from pipeline.lanes.markers import CommitMarker, Totals
from pipeline.lanes.positions import InputPartition
from pipeline.lanes.start import Rebuild, Wanted, begun_anew, first_marker, rebuilt

AT = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
WANTED = Wanted(Epoch(1), "digest", stateful=True, on_change=None, place="here")
FIRST = first_marker(WANTED, Incarnation("one"), {AT: Offset(0)}, Millis(0))


def _facts(batch: int, end: int, largest: int | None = None) -> BatchFacts:
    return BatchFacts(
        batch=BatchId(batch),
        end={AT: Offset(end)},
        late_ms=None,
        eviction_ms=None,
        advance_ms=None,
        records=end,
        bad=0,
        unknown=(),
        late=0,
        largest={} if largest is None else {AT: Millis(largest)},
    )


def _after(marker: CommitMarker, facts: BatchFacts, written: Written | None = None) -> CommitMarker:
    return next_marker(
        marker,
        facts,
        written or Written(0, 0, 0),
        epoch=Epoch(2),
        needed=facts.end,
        boundary_ms=None,
        now_ms=Millis(9),
    )


def test_a_batch_begins_where_the_last_one_ended() -> None:
    """Start positions are the last marker's end; nothing lies between two batches."""
    marker = _after(_after(FIRST, _facts(0, 5)), _facts(1, 8))
    assert (marker.start[AT], marker.end[AT], marker.batch) == (5, 8, 1)
    assert marker.incarnation == "one"
    assert marker.epoch == 2


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_progress_never_falls(times: list[int]) -> None:
    """An old record does not take back what was seen."""
    marker = FIRST
    for batch, time in enumerate(times):
        marker = _after(marker, _facts(batch, batch + 1, time))
    assert marker.progress[AT] == max(times)


def test_totals_add_up() -> None:
    """Counts travel with the marker."""
    marker = _after(FIRST, _facts(0, 5), Written(records=3, dead_letters=2, late=1))
    marker = _after(marker, _facts(1, 2), Written(records=1, dead_letters=0, late=0))
    assert marker.totals == Totals(records_in=7, records_out=4, dead_letters=2, late_dropped=1)


def test_after_a_marker_comes_its_batch_again_or_the_next_one() -> None:
    """The batch of the marker was written, the next one is to be; no other may be published."""
    marker = FIRST
    for batch in range(3):
        facts = _facts(batch, 5 * batch)
        assert not is_repeat(marker, facts)
        marker = _after(marker, facts)
        assert is_repeat(marker, facts)
    for batch in (0, 1, 4, 5):
        with pytest.raises(BrokenInvariantError, match=f"batch {batch} was executed after") as it:
            is_repeat(marker, _facts(batch, 10))
        assert it.value.hint


def test_a_new_life_begins_with_the_batch_after_its_first_marker() -> None:
    """Batch 0 of an empty checkpoint; 1 where batch 0 has built the state."""
    last = _after(FIRST, replace(_facts(0, 5), batch=BatchId(7)))
    begun = begun_anew(last, WANTED, Incarnation("two"))
    assert not is_repeat(begun, _facts(0, 9))
    after = rebuilt(Rebuild(last, None, None, "why"), last.end, WANTED, Incarnation("two"))
    assert not is_repeat(after, _facts(1, 9))
    for marker, batch in ((begun, 1), (after, 2)):
        with pytest.raises(BrokenInvariantError):
            is_repeat(marker, _facts(batch, 9))


def test_a_repeat_is_computed_as_it_was_written() -> None:
    """A function that fails for other records now would leave another state behind."""
    facts = replace(_facts(0, 5), failed={"left": 3, "right": 4})
    marker = _after(FIRST, facts)
    assert marker.failed == 7
    assert is_repeat(marker, facts)
    with pytest.raises(RetryError, match="failed for other records of batch 0"):
        is_repeat(marker, _facts(0, 5))


def test_a_written_batch_that_would_read_something_else_is_a_broken_invariant() -> None:
    """Its output is final; nothing may be made of it a second time."""
    marker = _after(FIRST, _facts(0, 5))
    with pytest.raises(BrokenInvariantError, match="up to offset 5 and is planned up to 6"):
        is_repeat(marker, _facts(0, 6))
    with pytest.raises(BrokenInvariantError, match="up to offset 5 and is planned up to None"):
        is_repeat(marker, replace(_facts(0, 5), end={}))

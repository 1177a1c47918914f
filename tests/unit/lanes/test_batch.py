from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.next_batch import Batch
from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.batch import (
    BatchFacts,
    Written,
    check_planned,
    decided_otherwise,
    is_repeat,
    next_marker,
    passed_on,
)
from pipeline.lanes.needed_letters import DeadLetterSpan
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import begun_anew, first_marker, rebuilt
from pipeline.markers.commit_marker import CommitMarker, Judged, Totals
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow

AT = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
OTHER = InputPartition(StreamName("cars"), TopicName("car-sightings"), 1)
WANTED = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
FIRST = first_marker(WANTED, Incarnation("one"), {AT: Offset(0)}, Millis(0))


def _facts(batch: int, end: int, largest: int | None = None, read: int | None = None) -> BatchFacts:
    return BatchFacts(
        batch=BatchId(batch),
        end={AT: Offset(end)},
        late_ms=None,
        eviction_ms=None,
        records=end if read is None else read,
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
        letters=(DeadLetterSpan("letters", {0: Offset(3)}, facts.end),),
        output_ends={0: Offset(4)},
        boundary_ms=None,
        now_ms=Millis(9),
    )


def test_a_batch_begins_where_the_last_one_ended() -> None:
    """Start positions are the last marker's end; there is no gap between two batches."""
    marker = _after(_after(FIRST, _facts(0, 5)), _facts(1, 8))
    assert (marker.start[AT], marker.end[AT], marker.batch) == (5, 8, 1)
    assert marker.incarnation == "one"
    assert marker.epoch == 2


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_progress_never_falls(times: list[int]) -> None:
    """An old record does not reduce the maximum event time."""
    marker = FIRST
    for batch, time in enumerate(times):
        marker = _after(marker, _facts(batch, batch + 1, time))
    assert marker.progress[AT] == max(times)


def test_totals_add_up() -> None:
    """Counts are part of the marker."""
    marker = _after(FIRST, _facts(0, 5), Written(records=3, dead_letters=2, late=1))
    marker = _after(marker, _facts(1, 7, read=2), Written(records=1, dead_letters=0, late=0))
    assert marker.totals == Totals(records_in=7, records_out=4, dead_letters=2, late_dropped=1)


def test_a_marker_is_followed_by_its_batch_again_or_the_next_one() -> None:
    """The batch of the marker was written, the next one is pending; no other may be published."""
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


def test_a_new_incarnation_begins_with_the_batch_after_its_first_marker() -> None:
    """Batch 0 of an empty checkpoint; 1 where batch 0 has built the state."""
    last = _after(FIRST, _facts(0, 5))
    begun = begun_anew(last, WANTED, Incarnation("two"))
    assert not is_repeat(begun, _facts(0, 9))
    after = rebuilt(
        Rebuild(last, None, None, "why"), last.end, BatchId(0), WANTED, Incarnation("two")
    )
    assert not is_repeat(after, _facts(1, 9))
    for marker, batch in ((begun, 1), (after, 2)):
        with pytest.raises(BrokenInvariantError):
            is_repeat(marker, _facts(batch, 9))


def test_a_marker_contains_what_was_judged() -> None:
    """And by which plan: lateness comes from Spark, or from dead letters of a stateless lane."""
    facts = replace(_facts(0, 5), bad=2, failed={"left": 3, "right": 4})
    first = replace(FIRST, plan="1:plan")
    marker = _after(first, facts, Written(0, dead_letters=2, late=0, checksum=99))
    assert marker.judged == Judged(records=5, bad=2, late=False, refused=99, failed=7)
    assert marker.plan == "1:plan"
    for late in (_after(FIRST, replace(facts, late=8)), _after(FIRST, facts, Written(0, 1, 1))):
        assert late.judged is not None
        assert late.judged.late


STARTED = replace(FIRST, batch=BatchId(0), eviction_ms=Millis(10))
"""Of a lane whose event time begins further on."""
BATCH = replace(
    _facts(1, 5), bad=2, late=3, failed={"only": 7}, late_ms=Millis(10), eviction_ms=Millis(20)
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"records": 4}, "records read: 4, not 5"),
        ({"bad": 1}, "bad records: 1, not 2"),
        ({"late": 0}, "any late records: False, not True"),
        ({"failed": {"only": 8}}, "checksum of what functions refused: 8, not 7"),
        ({"late_ms": Millis(11)}, "watermark of late records: 11, not 10"),
        ({"eviction_ms": None}, "watermark of the state: None, not 20"),
    ],
)
def test_a_repeated_batch_must_decide_as_when_it_was_written(
    changes: dict[str, Any], message: str
) -> None:
    """Otherwise the state differs from the output. The number of groups Spark drops may differ."""
    marker = _after(STARTED, BATCH, Written(0, 2, 1))
    assert decided_otherwise(marker, BATCH) == ""
    assert decided_otherwise(marker, replace(BATCH, late=1)) == ""
    assert decided_otherwise(marker, replace(BATCH, **changes)) == message


def test_the_batch_of_a_rebuild_is_never_repeated() -> None:
    """The records that it skipped are not in the log."""
    assert "no batch that may be executed again" in decided_otherwise(FIRST, _facts(0, 0))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (_facts(3, 8), "batch 3 follows on batch 1"),
        (_facts(2, 4), "the end went back to topic car-sightings, partition 0, offset 4"),
        (replace(_facts(2, 8), end={}), "offset 5 .* is the end of the last batch, and not read"),
        (
            replace(_facts(2, 8), end={AT: Offset(8), OTHER: Offset(1)}),
            "partition 1, offset 1 .* is the end of a partition that has no begin",
        ),
        (replace(_facts(2, 8), late_ms=Millis(9)), "watermark of late records 9 after 10"),
        (replace(_facts(2, 8), late_ms=Millis(19)), "were late by 19, the batch before ran under"),
        (replace(_facts(2, 8), eviction_ms=Millis(9)), "watermark of the state 9 after 20"),
    ],
)
def test_a_batch_that_does_not_follow_the_last_one_is_not_written(
    facts: BatchFacts, message: str
) -> None:
    """A gap would lose records, an overlap count them twice, and a watermark never falls."""
    last = _after(STARTED, BATCH)
    late_ms, eviction_ms = facts.late_ms or Millis(20), facts.eviction_ms or Millis(20)
    facts = replace(facts, late_ms=late_ms, eviction_ms=eviction_ms)
    with pytest.raises(BrokenInvariantError, match=message) as caught:
        _after(last, facts)
    assert "does not follow on batch 1" in caught.value.message
    assert caught.value.hint


WINDOWS = Windowed(TumblingWindow(10, 0))
PLANNED = Batch({AT: Offset(8)}, Millis(29))


@pytest.mark.parametrize(
    ("planned", "facts", "message"),
    [
        (PLANNED, replace(_facts(2, 8), eviction_ms=Millis(30)), None),
        (replace(PLANNED, event_ms=None), replace(_facts(2, 8), eviction_ms=Millis(20)), None),
        (
            PLANNED,
            replace(_facts(2, 9), eviction_ms=Millis(30)),
            "to offset 8 and executed up to 9",
        ),
        (
            PLANNED,
            replace(_facts(2, 8), end={AT: Offset(8), OTHER: Offset(1)}, eviction_ms=Millis(30)),
            "up to offset None and executed up to 1 in topic car-sightings, partition 1",
        ),
        (
            replace(PLANNED, end={**PLANNED.end, OTHER: Offset(1)}),
            replace(_facts(2, 8), eviction_ms=Millis(30)),
            "up to offset 1 and executed up to None in topic car-sightings, partition 1",
        ),
        (
            PLANNED,
            replace(_facts(2, 8), eviction_ms=Millis(20)),
            "watermark 30 and executed under 20",
        ),
        (
            replace(PLANNED, event_ms=None),
            replace(_facts(2, 8), eviction_ms=Millis(30)),
            "watermark 20 and executed under 30",
        ),
        (PLANNED, replace(_facts(2, 8), eviction_ms=None), "watermark 30 and executed under None"),
    ],
)
def test_a_batch_must_be_the_planned_one(
    planned: Batch, facts: BatchFacts, message: str | None
) -> None:
    """Its ends and its watermark; without a movement of event time that of the batch before."""
    before = _after(STARTED, BATCH)
    if message is None:
        check_planned(planned, WINDOWS, before, facts)
        return
    with pytest.raises(BrokenInvariantError, match=message) as caught:
        check_planned(planned, WINDOWS, before, facts)
    assert caught.value.place == "batch 2 of incarnation one"


def test_a_stateless_batch_has_no_watermark_to_compare() -> None:
    """Its event time is passed on by its marker alone; its ends are compared all the same."""
    check_planned(PLANNED, Stateless(), FIRST, _facts(0, 8))
    with pytest.raises(BrokenInvariantError, match="executed up to 9"):
        check_planned(PLANNED, Stateless(), FIRST, _facts(0, 9))


def test_event_time_is_passed_on_by_a_marker_of_the_same_batch() -> None:
    """So the batch is not written again, and the next one follows; a promise never falls."""
    last = _after(FIRST, _facts(0, 5))
    passed = passed_on(last, Millis(70), Millis(11))
    assert passed == replace(last, boundary_ms=Millis(70), written_at_ms=Millis(11))
    assert is_repeat(passed, _facts(0, 5))
    assert not is_repeat(passed, _facts(1, 6))
    with pytest.raises(BrokenInvariantError, match="boundary 69 after 70"):
        passed_on(passed, Millis(69), Millis(12))


def test_event_time_is_passed_on_before_the_first_batch() -> None:
    """The first batch follows on that marker."""
    passed = passed_on(FIRST, Millis(70), Millis(11))
    assert (passed.batch, passed.end) == (FIRST.batch, FIRST.end)
    assert not is_repeat(passed, _facts(0, 5))


def test_a_written_batch_that_would_read_something_else_is_a_broken_invariant() -> None:
    """Its output is final and may not be computed a second time."""
    marker = _after(FIRST, _facts(0, 5))
    with pytest.raises(BrokenInvariantError, match="up to offset 5 and is planned up to 6"):
        is_repeat(marker, _facts(0, 6))
    with pytest.raises(BrokenInvariantError, match="up to offset 5 and is planned up to None"):
        is_repeat(marker, replace(_facts(0, 5), end={}))

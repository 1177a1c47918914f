"""Steps of a start."""

from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset
from pipeline.lanes.marker_invariants import violations
from pipeline.lanes.start.decision import BeginAt, Continue, FirstStart, Rebuild, SkipToEnd
from pipeline.lanes.start.plan import (
    LinkedCheckpoint,
    NoCheckpoint,
    RebuiltCheckpoint,
    StartFacts,
    plan_start,
)
from pipeline.markers.commit_marker import NO_BATCH
from pipeline.markers.cut import Cut
from pipeline.markers.gap import Gap
from pipeline.planner.state import OnChange
from tests.unit.lanes.start.test_decision import STATEFUL, ends, marker

FACTS = StartFacts(Incarnation("two"), Millis(9_000))
GROWN = {**ends(7), replace(next(iter(ends(7))), partition=9): Offset(3)}


def test_a_first_start_begins_at_the_start_of_its_topics() -> None:
    """Its marker fixes the positions and the life; nothing has run."""
    plan = plan_start(FirstStart(), STATEFUL, replace(FACTS, first=ends(4)))
    assert plan.checkpoint == NoCheckpoint()
    assert (plan.marker.end, plan.marker.incarnation) == (ends(4), "two")
    assert (plan.marker.batch, plan.marker.written_at_ms) == (NO_BATCH, 9_000)


def test_a_lane_without_a_checkpoint_begins_an_incarnation_at_its_marker() -> None:
    """In the present partitions."""
    grown = replace(STATEFUL, positions=GROWN)
    plan = plan_start(BeginAt(marker(7), "gone"), grown, FACTS)
    assert plan.checkpoint == NoCheckpoint()
    assert (plan.marker.end, plan.marker.incarnation) == (GROWN, "two")


def test_records_skipped_by_choice_are_skipped() -> None:
    """The marker within the range of its topics counts, for a stateless lane and for a rebuild."""
    request, clamped = replace(STATEFUL, on_change=OnChange.EMPTY), marker(9)
    facts = replace(FACTS, clamped=clamped)
    assert plan_start(BeginAt(marker(7), "asked"), request, facts).marker.end == ends(9)
    plan = plan_start(Rebuild(marker(7), None, None, "asked", chosen=True), request, facts)
    assert isinstance(plan.checkpoint, RebuiltCheckpoint)
    assert (plan.checkpoint.rebuild.marker, plan.checkpoint.rebuild.begin) == (clamped, ends(9))


def test_a_lane_continues_with_its_checkpoint_and_incarnation() -> None:
    """A planned batch reads the partitions of the marker; others get the added ones."""
    grown = replace(STATEFUL, positions=GROWN)
    for planned, end in ((None, GROWN), (marker(8).batch, ends(7))):
        plan = plan_start(Continue(marker(7), planned), grown, FACTS)
        assert plan.checkpoint == LinkedCheckpoint()
        assert (plan.marker.end, plan.marker.incarnation) == (end, marker(7).incarnation)
        assert plan.marker.epoch == STATEFUL.epoch


def test_each_start_keeps_the_cut_of_the_next_batch() -> None:
    """Extended by new partitions, of which it reads nothing; a choice drops it."""
    cut = Cut("2.8", ends(9), Millis(9_000), 4)
    last = replace(marker(7), cut=cut)
    grown = replace(cut, end={**ends(9), **{at: o for at, o in GROWN.items() if at not in ends(9)}})
    wanted = replace(STATEFUL, positions=GROWN)
    assert plan_start(BeginAt(last, "gone"), wanted, FACTS).marker.cut == grown
    assert plan_start(Continue(last, None), wanted, FACTS).marker.cut == grown
    assert plan_start(Continue(last, last.batch), wanted, FACTS).marker.cut == cut
    rebuild = plan_start(Rebuild(last, ends(5), None, "gone"), wanted, FACTS)
    assert isinstance(rebuild.checkpoint, RebuiltCheckpoint)
    begun = rebuild.marker_after(rebuild.checkpoint.rebuild, ends(4), BatchId(3), wanted)
    assert (begun.cut, begun.batch) == (grown, 3)
    for choice in (replace(wanted, on_change=OnChange.REBUILD), replace(wanted, anew=True)):
        assert plan_start(BeginAt(last, "asked"), choice, FACTS).marker.cut is None
        assert rebuild.marker_after(rebuild.checkpoint.rebuild, {}, BatchId(3), choice).cut is None


def test_a_rebuild_commits_the_written_marker_and_then_its_own() -> None:
    """The decision of this start is in force once the state is built."""
    written = replace(marker(7), epoch=Epoch(1))
    start = Rebuild(marker(7), ends(5), Millis(7_000), "gone")
    facts = replace(FACTS, written=written, not_before=ends(2))
    plan = plan_start(start, replace(STATEFUL, positions=ends(7)), facts)
    assert isinstance(plan.checkpoint, RebuiltCheckpoint)
    rebuild = plan.checkpoint.rebuild
    assert (rebuild.begin, rebuild.not_before) == (ends(5), ends(2))
    assert (plan.marker.epoch, plan.marker.batch) == (STATEFUL.epoch, written.batch)
    assert plan.marker.incarnation == written.incarnation
    after = plan.marker_after(rebuild, ends(4), BatchId(3), STATEFUL)
    assert (after.batch, after.incarnation) == (3, "two")
    assert (after.needed, after.end, after.eviction_ms) == (ends(4), ends(7), 7_000)


def test_a_lane_that_skips_to_the_end_begins_there_without_state() -> None:
    """The last marker comes first, as with a rebuild; the next one has the gap."""
    written = replace(marker(7), epoch=Epoch(1))
    gap = Gap(Incarnation("two"), (), None, Millis(5), Millis(9_500), Millis(9_000))
    at_end = replace(marker(7), end=ends(20), needed=ends(20), gap=gap)
    facts = replace(FACTS, written=written, after_gap=at_end)
    plan = plan_start(SkipToEnd(marker(7), "gone"), STATEFUL, facts)
    assert plan.marker == replace(written, epoch=STATEFUL.epoch)
    assert isinstance(plan.checkpoint, RebuiltCheckpoint)
    rebuild = plan.checkpoint.rebuild
    assert (rebuild.begin, rebuild.marker, rebuild.eviction_ms) == (ends(20), at_end, 7_000)
    after = plan.marker_after(rebuild, ends(20), BatchId(0), STATEFUL)
    assert (after.gap, after.end, after.start, after.needed) == (gap, *[ends(20)] * 3)
    assert (after.incarnation, after.chosen, after.judged) == ("two", False, None)
    assert violations((plan.marker, after)) == ()


def test_the_newest_offsets_have_to_be_read_before() -> None:
    """An internal error."""
    with pytest.raises(BrokenInvariantError):
        plan_start(SkipToEnd(marker(7), "gone"), STATEFUL, FACTS)

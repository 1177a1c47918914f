"""Decisions of a lane's start."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import FencedError, RefusedError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.new_partitions import reassigned
from pipeline.lanes.start.decision import (
    BeginAt,
    Continue,
    FirstStart,
    Rebuild,
    Start,
    decide_start,
)
from pipeline.lanes.start.facts import (
    CheckpointFacts,
    CommittedState,
    PlannedBatch,
    StartRequest,
    Unusable,
)
from pipeline.lanes.start.markers import (
    adopted,
    begun_anew,
    first_marker,
    passed_over,
    rebuilt,
)
from pipeline.lanes.start.plan import LinkedCheckpoint, StartFacts, plan_start
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker, Judged, Totals
from pipeline.markers.positions import InputPartition
from pipeline.planner.state import OnChange
from tests.unit.lanes.marked import marked

PLACE = "fragment tolls.speed"
CARS = InputPartition(StreamName("cars"), TopicName("sightings"), 0)
NEW = InputPartition(StreamName("cars"), TopicName("sightings"), 1)
ONE = Incarnation("one")
GONE = Unusable("it is gone")
STATEFUL = StartRequest(Epoch(3), "digest", stateful=True, on_change=None, place=PLACE)
STATELESS = replace(STATEFUL, stateful=False)


def ends(batch: int) -> dict[InputPartition, Offset]:
    """The end of each batch in these tests: ten records a batch."""
    return {CARS: Offset((batch + 1) * 10)}


def marker(batch: int, *, epoch: int = 2, incarnation: str = "one") -> CommitMarker:
    """The marker of a batch; windows are open since the batch before."""
    request = replace(STATEFUL, epoch=Epoch(epoch))
    first = first_marker(request, Incarnation(incarnation), ends(-1), Millis(0))
    if batch < 0:
        return first
    return replace(
        first,
        batch=BatchId(batch),
        start=ends(batch - 1),
        end=ends(batch),
        needed=ends(batch - 1),
        late_ms=watermark_ms(batch - 1),
        eviction_ms=Millis(batch * 1000),
        judged=Judged(10, 0, late=False, refused=0, failed=0),
        boundary_ms=Millis(batch * 1000 - 1),
    )


def watermark_ms(batch: int) -> Millis | None:
    """The watermark of each batch in these tests; batch 0 has none."""
    return Millis(batch * 1000) if batch > 0 else None


def checkpoint(
    committed: int, planned: int | None = None, incarnation: str = "one"
) -> CheckpointFacts:
    """The facts of a checkpoint; -1: no committed batch."""
    last = None if committed < 0 else BatchId(committed)
    return CheckpointFacts(
        incarnation=Incarnation(incarnation),
        committed=last,
        planned=None if planned is None else PlannedBatch(BatchId(planned), ends(planned)),
        state=None if last is None else CommittedState(last, ends(last), watermark_ms(last)),
    )


def start(
    last: CommitMarker | None, facts: CheckpointFacts | Unusable, request: StartRequest = STATEFUL
) -> Start:
    """Decide under epoch 4; the markers have epoch 3."""
    return decide_start(last, facts, replace(request, epoch=Epoch(4)))


def test_a_lane_that_never_ran_starts_for_the_first_time() -> None:
    """Without marker and checkpoint: positions and incarnation are chosen."""
    assert start(None, GONE) == FirstStart()


def test_a_checkpoint_without_any_marker_is_refused() -> None:
    """The written output is unknown: the markers were lost, or this is another cluster."""
    with pytest.raises(RefusedError, match="no commit marker") as caught:
        start(None, checkpoint(4, 4))
    assert caught.value.place == PLACE
    assert caught.value.hint


@pytest.mark.parametrize("facts", [GONE, checkpoint(-1), checkpoint(-1, 0, "other")])
def test_a_first_marker_without_any_batch_begins_at_its_positions(
    facts: CheckpointFacts | Unusable,
) -> None:
    """A crash before the first transaction loses nothing: the batch is planned again."""
    found = start(marker(-1), facts)
    assert isinstance(found, BeginAt)
    assert found.marker == marker(-1)


def test_marker_and_checkpoint_of_the_same_batch_continue() -> None:
    """Whether the next batch is planned already or not."""
    for planned, first in ((7, None), (8, BatchId(8))):
        assert start(marker(7), checkpoint(7, planned)) == Continue(marker(7), planned=first)


def test_a_written_but_uncommitted_batch_is_executed_without_output() -> None:
    """The crash was between the transaction and Spark's own commit."""
    for request in (STATEFUL, STATELESS):
        found = start(marker(7), checkpoint(6, 7), request)
        assert found == Continue(marker(7), planned=BatchId(7))
        found = start(marker(0), checkpoint(-1, 0), request)
        assert found == Continue(marker(0), planned=BatchId(0))


BROKEN = [
    (GONE, "it is gone"),
    (checkpoint(-1), "older than the marker of batch 7"),
    (checkpoint(7, 7, "two"), "belongs to incarnation two"),
    (checkpoint(8, 8), "ahead of the marker of batch 7: batch 8"),
    (checkpoint(5, 6), "older than the marker of batch 7: batch 5"),
    (checkpoint(6, 6), "batch 6 is committed and 6 planned"),
    (checkpoint(6), "damaged: batch 6 is committed and -1 planned"),
    (checkpoint(7), "damaged: batch 7 is committed and -1 planned"),
    (checkpoint(7, 9), "damaged: batch 7 is committed and 9 planned"),
    (checkpoint(7, 3), "damaged"),
    (
        CheckpointFacts(ONE, BatchId(6), PlannedBatch(BatchId(7), {CARS: Offset(81)})),
        "partition 0 ends at 81 there and at 80 here",
    ),
    (
        CheckpointFacts(ONE, BatchId(6), PlannedBatch(BatchId(7), {})),
        "ends at no position there",
    ),
]


@pytest.mark.parametrize(("facts", "why"), BROKEN)
def test_state_is_rebuilt_unless_the_checkpoint_is_the_lanes_own(
    facts: CheckpointFacts | Unusable, why: str
) -> None:
    """From the oldest needed positions, and with the marker's watermark in force afterwards."""
    found = start(marker(7), facts)
    assert isinstance(found, Rebuild)
    assert (found.begin, found.eviction_ms) == (ends(6), 7000)
    assert found.marker == marker(7)
    assert why in found.why


@pytest.mark.parametrize(("facts", "why"), BROKEN)
def test_without_state_positions_are_enough(facts: CheckpointFacts | Unusable, why: str) -> None:
    """A stateless lane continues at its marker."""
    found = start(marker(7), facts, STATELESS)
    assert isinstance(found, BeginAt)
    assert why in found.why


def test_a_state_of_another_plan_is_refused_until_a_choice() -> None:
    """Both choices keep the promise; one reads everything again, one nothing."""
    changed = replace(STATEFUL, state="another digest")
    last = replace(marker(7), boundary_ms=Millis(9000))
    with pytest.raises(RefusedError, match="another version") as caught:
        start(last, checkpoint(7, 7), changed)
    assert "--state rebuild" in (caught.value.hint or "")
    for choice, begin in ((OnChange.REBUILD, None), (OnChange.EMPTY, ends(7))):
        found = start(last, checkpoint(7, 7), replace(changed, on_change=choice))
        assert isinstance(found, Rebuild)
        assert (found.begin, found.eviction_ms) == (begin, 9000)


def test_deleted_records_are_skipped_only_by_choice() -> None:
    """A lane without state begins at its marker again; positions stay, unless records are lost."""
    chosen = replace(STATELESS, on_change=OnChange.EMPTY)
    found = start(marker(3), checkpoint(3, 3), chosen)
    assert isinstance(found, BeginAt)
    (end,) = ends(3).values()
    later = passed_over(found.marker, {CARS: Offset(end + 5), NEW: Offset(9)}, {})
    assert later.end == {CARS: end + 5}
    assert (later.start, later.needed) == (later.end, later.end)
    assert passed_over(found.marker, {CARS: Offset(0)}, {CARS: Offset(end)}) == found.marker
    lost = passed_over(found.marker, {CARS: Offset(0)}, {CARS: Offset(end - 5)})
    assert lost.end == {CARS: end - 5}
    assert isinstance(start(marker(3), checkpoint(3, 3), STATELESS), Continue)


def test_a_lane_that_has_run_needs_its_marker() -> None:
    """An empty marker topic has lost it; a node killed before the first marker has none yet."""
    ran = replace(STATELESS, ran_before=True)
    assert isinstance(start(None, GONE, STATELESS), FirstStart)
    with pytest.raises(RefusedError, match="the catalog says that the fragment has run"):
        start(None, GONE, ran)
    assert isinstance(start(marker(3), checkpoint(3, 3), ran), Continue)


def test_a_choice_continues_without_results_that_kafka_lost() -> None:
    """Otherwise a start requires all acknowledged results."""
    last = replace(marker(7), output="id", output_ends={0: Offset(5)})
    for on_change, kept in ((None, {0: 5}), (OnChange.EMPTY, {})):
        request = replace(STATEFUL, on_change=on_change)
        assert begun_anew(last, request, ONE).output_ends == kept
        found = start(last, GONE, request)
        assert isinstance(found, Rebuild)
        assert rebuilt(found, ends(6), BatchId(0), request, ONE).output_ends == kept


def test_a_checkpoint_of_another_engine_is_not_read() -> None:
    """The state is built from the log; a stateless lane uses positions; no marker is an error."""
    facts = replace(checkpoint(7, 7), foreign="Spark 3 wrote the checkpoint, this is Spark 4")
    found = start(marker(7), facts)
    assert isinstance(found, Rebuild)
    assert (found.begin, found.eviction_ms, found.why) == (ends(6), 7000, facts.foreign)
    begun = start(marker(7), facts, STATELESS)
    assert isinstance(begun, BeginAt)
    assert (begun.marker.end, begun.why) == (ends(7), facts.foreign)
    with pytest.raises(RefusedError, match="no commit marker"):
        start(None, facts)


def test_a_state_with_a_digest_in_another_format_is_rebuilt() -> None:
    """A changed plan was refused at deploy; a choice is executed."""
    last = replace(marker(7), state="1:abc")
    request = replace(STATEFUL, state="2:abc")
    found = start(last, checkpoint(7, 7), request)
    assert isinstance(found, Rebuild)
    assert (found.begin, found.eviction_ms) == (ends(6), 7000)
    assert rebuilt(found, ends(6), BatchId(0), request, Incarnation("two")).state == "2:abc"
    chosen = start(last, checkpoint(7, 7), replace(request, on_change=OnChange.EMPTY))
    assert isinstance(chosen, Rebuild)
    assert chosen.begin == ends(7)
    assert isinstance(start(last, checkpoint(7, 7), replace(request, stateful=False)), BeginAt)


def test_a_marker_of_a_newer_epoch_fences() -> None:
    """Another node has taken the fragment over, whatever the checkpoint is."""
    for facts in (GONE, checkpoint(7, 7)):
        with pytest.raises(FencedError, match="epoch 5"):
            start(marker(7, epoch=5), facts)


def test_an_adopted_marker_changes_only_the_owner() -> None:
    """The new owner's copy is otherwise equal."""
    assert adopted(marker(7, epoch=2), STATEFUL) == marker(7, epoch=3)


def test_a_rebuild_needs_the_written_dead_letters() -> None:
    """In a recreated topic the skipped records are unknown; then a user has to choose."""
    same, again = (
        replace(STATEFUL, dead_letter_topic_id=dead_letters) for dead_letters in ("one", "two")
    )
    mine = replace(marker(7), letters="one", letters_from={0: Offset(5)})
    assert isinstance(decide_start(mine, GONE, same), Rebuild)
    assert isinstance(decide_start(mine, checkpoint(7, 7), again), Continue)
    assert adopted(mine, again) == replace(mine, epoch=again.epoch)
    free = replace(mine, letters_from={}, totals=Totals(dead_letters=1))
    assert isinstance(decide_start(free, GONE, again), Rebuild)
    assert adopted(free, again).letters == "two"
    with pytest.raises(RefusedError, match="dead-letter topic was deleted and made again"):
        decide_start(mine, GONE, again)
    chosen = replace(again, on_change=OnChange.EMPTY)
    begun = decide_start(mine, GONE, chosen)
    assert isinstance(begun, Rebuild)
    assert rebuilt(begun, begun.marker.end, BatchId(0), chosen, ONE).letters == "two"
    assert begun_anew(mine, chosen, ONE).letters_from == {}


def test_a_first_marker_has_read_nothing() -> None:
    """Its positions are where the lane begins, for reading and for retention."""
    first = first_marker(STATEFUL, ONE, ends(0), Millis(5))
    assert first.batch == NO_BATCH
    assert first.start == first.end == first.needed == ends(0)


def test_a_rebuilt_lane_can_be_rebuilt_again_from_its_own_marker() -> None:
    """The marker of the new incarnation contains the needed positions and the watermark."""
    first = start(marker(7), GONE)
    assert isinstance(first, Rebuild)
    two = Incarnation("two")
    after = rebuilt(first, ends(6), BatchId(2), STATEFUL, two)
    assert (after.batch, after.end, after.incarnation) == (2, ends(7), two)
    level = CommittedState(BatchId(2), ends(7), Millis(7000))
    same = replace(checkpoint(2, 2, "two"), state=level)
    assert start(after, same) == Continue(after, planned=None)
    again = start(after, GONE)
    assert isinstance(again, Rebuild)
    assert (again.begin, again.eviction_ms) == (first.begin, first.eviction_ms)


def test_starting_anew_keeps_the_promise_and_the_positions() -> None:
    """Only batches and state begin again."""
    after = begun_anew(marker(7), STATELESS, Incarnation("two"))
    assert (after.batch, after.end, after.needed) == (NO_BATCH, ends(7), ends(7))
    assert after.boundary_ms == marker(7).boundary_ms
    first_batch = start(after, checkpoint(-1, 0, "two"), STATELESS)
    assert first_batch == Continue(after, planned=BatchId(0))


def test_promises_of_another_plan_may_make_records_of_fragments_late() -> None:
    """Their promise is another one. An external record is late by itself, without a promise."""
    (cars,) = marked({CARS: 0})
    last = replace(marker(7), sources=(cars,), boundary_ms=Millis(9_000))
    derived = replace(STATEFUL, state="other", sources=(cars,), derived=frozenset({CARS.input}))
    chosen = replace(derived, on_change=OnChange.REBUILD)
    found = start(last, GONE, chosen)
    assert isinstance(found, Rebuild)
    for request, sources in (
        (chosen, (replace(cars, settled_ms=Millis(9_000)),)),
        (replace(chosen, derived=frozenset()), (cars,)),
        (replace(derived, state="digest"), (cars,)),
    ):
        assert rebuilt(found, last.needed, BatchId(0), request, ONE).sources == sources
        assert begun_anew(last, request, ONE).sources == sources
    further = replace(last, sources=(replace(cars, settled_ms=Millis(10_000)),))
    assert begun_anew(further, chosen, ONE).sources == further.sources


def test_a_lane_that_has_read_without_a_promise_has_a_state_to_choose() -> None:
    """A lane without state that started anew has read records that a state may need."""
    read = replace(marker(-1), state="other", totals=Totals(records_in=1_000))
    with pytest.raises(RefusedError, match="another version of the network made the state"):
        start(read, GONE)
    assert isinstance(start(read, GONE, STATELESS), BeginAt)


def test_an_owner_with_the_epoch_of_the_last_marker_is_fenced() -> None:
    """ZooKeeper was reset, so both claimed it; the first writer owns the fragment."""
    with pytest.raises(FencedError, match="epoch 4 wrote the last commit marker"):
        start(marker(7, epoch=4), checkpoint(7, 7))


def test_a_batch_planned_with_other_partitions_is_not_executed() -> None:
    """It has no end of the new partition, so its marker would not follow the last one."""
    grown = reassigned(marker(7), {**ends(7), NEW: Offset(0)})
    anew = Continue(grown, planned=None, withdrawn=BatchId(8))
    assert start(grown, checkpoint(7, 8)) == anew
    assert start(grown, checkpoint(7, 8), STATELESS) == anew
    assert start(grown, checkpoint(7, 7)) == Continue(grown, planned=None)


@pytest.mark.parametrize("request_", [STATEFUL, STATELESS, replace(STATEFUL, amnesia=True)])
def test_a_batch_planned_with_too_many_records_is_planned_anew(request_: StartRequest) -> None:
    """Records may have become larger since; the state is as good as without that plan."""
    few = replace(request_, most=4)
    anew = Continue(marker(7), planned=None, withdrawn=BatchId(8))
    assert start(marker(7), checkpoint(7, 8), few) == anew
    assert plan_start(anew, few, StartFacts(ONE, Millis(0))).checkpoint == LinkedCheckpoint(
        BatchId(8)
    )
    written = start(marker(7), checkpoint(6, 7), few)
    assert written == Continue(marker(7), planned=BatchId(7))


DIFFERING = [
    (7, CommittedState(BatchId(7), {CARS: Offset(95)}, Millis(9000)), "ends at 95 there and at 80"),
    (7, CommittedState(BatchId(7), ends(7), Millis(9000)), "under watermark 9000"),
    (7, CommittedState(BatchId(7), {**ends(7), NEW: Offset(3)}, Millis(7000)), "ends at 3 there"),
    (6, CommittedState(BatchId(6), {CARS: Offset(60)}, Millis(6000)), "ends at 60 there and at 70"),
    (6, CommittedState(BatchId(6), ends(6), Millis(5000)), "under watermark 5000"),
]


@pytest.mark.parametrize(("committed", "state", "why"), DIFFERING)
def test_a_state_at_another_place_than_the_marker_is_not_continued(
    committed: int, state: CommittedState, why: str
) -> None:
    """The records in between would be read twice, or never; a stateless lane has positions only."""
    facts = replace(checkpoint(committed, 7), state=state)
    found = start(marker(7), facts)
    assert isinstance(found, Rebuild)
    assert why in found.why
    assert found.since is None
    other = start(marker(7), facts, STATELESS)
    by_time = "watermark" in why
    expected = Continue(marker(7), planned=BatchId(7) if committed == 6 else None)
    assert (other == expected) if by_time else isinstance(other, BeginAt)


def test_a_partition_of_which_nothing_was_read_makes_no_difference() -> None:
    """Spark begins it at 0; the marker of a start may have it before its first batch does."""
    grown = reassigned(marker(7), {**ends(7), NEW: Offset(0)})
    assert start(grown, checkpoint(7, 7)) == Continue(grown, planned=None)


@pytest.mark.parametrize("facts", [checkpoint(7, 7), checkpoint(7, 8), checkpoint(6, 7)])
def test_a_checkpoint_adds_a_new_partition_at_offset_0_only(facts: CheckpointFacts) -> None:
    """Spark refuses any other, although nothing of it was read: its first records are deleted."""
    for offset in (0, 5):
        positions = {**ends(7), NEW: Offset(offset)}
        state = start(marker(7), facts, replace(STATEFUL, positions=positions))
        none = start(marker(7), facts, replace(STATELESS, positions=positions))
        if offset:
            assert isinstance(state, Rebuild)
            assert isinstance(none, BeginAt)
            assert state.why == "topic sightings, partition 1 is new and begins at 5, not 0"
            assert none.why == state.why
        else:
            assert isinstance(state, Continue)
            assert none == state


STEPS = ("planned", "executed", "written", "committed")


@given(st.integers(1, 5), st.sampled_from(STEPS))
def test_a_crash_at_any_step_of_any_batch_can_be_continued(batch: int, step: str) -> None:
    """And exactly the written batches are executed without output."""
    written = step in ("written", "committed")
    last = marker(batch if written else batch - 1)
    facts = checkpoint(batch if step == "committed" else batch - 1, batch)
    expected = None if step == "committed" else BatchId(batch)
    assert start(last, facts) == Continue(last, planned=expected)


@given(st.integers(-1, 4), st.integers(-1, 4), st.none() | st.integers(0, 5))
def test_no_start_loses_or_repeats_a_record(
    written: int, committed: int, planned: int | None
) -> None:
    """The first batch with output begins where the marker ends, in every case."""
    found = start(marker(written), checkpoint(committed, planned))
    if isinstance(found, BeginAt | Rebuild):
        assert found.marker.end == ends(written)
        return
    assert isinstance(found, Continue)
    first_run = committed + 1
    assert found.planned in (None, first_run)
    first_written = first_run + 1 if found.marker.batch == first_run else first_run
    assert first_written == written + 1
    assert first_run in (written, written + 1)


def test_a_stateless_lane_of_another_plan_begins_at_its_positions() -> None:
    """The old plan's checkpoint may have other inputs or a state: it is not used."""
    found = start(marker(7), checkpoint(7, 7), replace(STATELESS, state="another digest"))
    assert isinstance(found, BeginAt)
    assert found.marker.end == ends(7)
    assert "its plan has changed" in found.why


def test_a_stateless_lane_repeats_no_batch_of_another_plan() -> None:
    """Only its positions are used."""
    found = start(marker(7), checkpoint(6, 7), replace(STATELESS, plan="another"))
    assert isinstance(found, BeginAt)
    assert "its plan has changed" in found.why


def test_the_batch_of_a_rebuild_is_not_repeated_as_an_ordinary_one() -> None:
    """It skipped the records of dead letters, which an ordinary batch would count."""
    decision = Rebuild(marker(7), ends(6), Millis(7000), "gone")
    begun = rebuilt(decision, ends(6), BatchId(0), STATEFUL, Incarnation("two"))
    planned = PlannedBatch(BatchId(0), begun.end)
    found = start(begun, CheckpointFacts(Incarnation("two"), None, planned))
    assert isinstance(found, Rebuild)
    assert "rebuilt the state, and was not finished" in found.why
    done = CheckpointFacts(Incarnation("two"), BatchId(0), planned)
    assert start(begun, done) == Continue(begun, None)


def test_a_marker_contains_the_plan_of_the_lane() -> None:
    """From its first one on."""
    request = replace(STATEFUL, plan="1:plan")
    one = Incarnation("two")
    begun = Rebuild(marker(7), ends(6), None, "gone")
    markers = (
        first_marker(request, one, ends(-1), Millis(0)),
        adopted(marker(7), request),
        begun_anew(marker(7), request, one),
        rebuilt(begun, ends(6), BatchId(0), request, one),
    )
    assert {found.plan for found in markers} == {"1:plan"}
    assert [found.judged is None for found in markers] == [True, False, True, True]

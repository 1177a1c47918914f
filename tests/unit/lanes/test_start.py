"""How a lane starts."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import FencedError, RefusedError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.markers import NO_BATCH, CommitMarker
from pipeline.lanes.positions import InputPartition
from pipeline.lanes.start import (
    BeginAt,
    CheckpointFacts,
    Continue,
    FirstStart,
    PlannedBatch,
    Start,
    adopted,
    decide_start,
    first_marker,
)

PLACE = "fragment tolls.speed, checkpoint epoch-00000003"
CARS = InputPartition(StreamName("cars"), TopicName("sightings"), 0)
ONE = Incarnation("one")


def ends(batch: int) -> dict[InputPartition, Offset]:
    """Where each batch ends in these tests: ten records a batch."""
    return {CARS: Offset((batch + 1) * 10)}


def marker(batch: int, *, epoch: int = 3, incarnation: str = "one") -> CommitMarker:
    """The marker of a batch."""
    first = first_marker(Epoch(epoch), Incarnation(incarnation), ends(-1), Millis(0))
    return replace(first, batch=BatchId(batch), end=ends(batch))


def checkpoint(
    committed: int, planned: int | None = None, incarnation: str | None = "one"
) -> CheckpointFacts:
    """A checkpoint's facts; -1: none committed."""
    return CheckpointFacts(
        incarnation=None if incarnation is None else Incarnation(incarnation),
        committed=None if committed < 0 else BatchId(committed),
        planned=None if planned is None else PlannedBatch(BatchId(planned), ends(planned)),
    )


def start(last: CommitMarker | None, facts: CheckpointFacts | None) -> Start:
    """Decide under epoch 3."""
    return decide_start(last, facts, Epoch(3), PLACE)


def test_a_lane_that_never_ran_starts_for_the_first_time() -> None:
    """No marker and no batch: positions and incarnation are still to be chosen."""
    assert start(None, None) == FirstStart()
    assert start(None, checkpoint(-1)) == FirstStart()
    assert start(None, checkpoint(-1, incarnation=None)) == FirstStart()


def test_a_first_marker_without_any_batch_begins_at_its_positions() -> None:
    """A crash between the first marker and the first batch loses nothing."""
    assert start(marker(-1), None) == BeginAt(marker(-1))
    assert start(marker(-1), checkpoint(-1)) == BeginAt(marker(-1))
    assert start(marker(-1), checkpoint(-1, incarnation="other")) == BeginAt(marker(-1))


def test_a_planned_first_batch_runs_and_is_written() -> None:
    """Its transaction never committed, so its output is not there yet."""
    assert start(marker(-1), checkpoint(-1, 0)) == Continue(marker(-1), executed_only=None)


def test_marker_and_checkpoint_of_the_same_batch_continue() -> None:
    """Whether the next batch is planned already or not."""
    for planned in (7, 8):
        assert start(marker(7), checkpoint(7, planned)) == Continue(marker(7), executed_only=None)


def test_a_batch_that_was_written_but_not_committed_is_executed_only() -> None:
    """The crash came between the transaction and Spark's own commit."""
    assert start(marker(7), checkpoint(6, 7)) == Continue(marker(7), executed_only=BatchId(7))
    assert start(marker(0), checkpoint(-1, 0)) == Continue(marker(0), executed_only=BatchId(0))


@pytest.mark.parametrize(
    ("last", "facts", "complaint"),
    [
        (marker(7), None, "checkpoint is missing, but batch 7 is written"),
        (marker(7), checkpoint(-1), "checkpoint is empty, but batch 7 is written"),
        (None, checkpoint(4, 4), "no commit marker"),
        (None, checkpoint(-1, 0), "no commit marker"),
        (marker(7), checkpoint(7, 7, "two"), "belongs to incarnation two"),
        (marker(7), checkpoint(7, 7, None), "belongs to incarnation unknown"),
        (marker(-1), checkpoint(-1, 0, "two"), "belongs to incarnation two"),
        (marker(7), checkpoint(8, 8), "newer than the last commit marker: batch 8"),
        (marker(-1), checkpoint(0, 0), "newer than the last commit marker: batch 0"),
        (marker(7), checkpoint(5, 6), "older than the last commit marker: batch 5"),
        (marker(7), checkpoint(6, 6), "batch 6 is committed and 6 planned"),
        (marker(7), checkpoint(6), "older than the last commit marker"),
        (marker(7), checkpoint(7, 9), "damaged: batch 7 is committed, 9 is planned"),
        (marker(7), checkpoint(7, 3), "damaged"),
    ],
)
def test_every_other_start_is_refused_with_what_differs(
    last: CommitMarker | None, facts: CheckpointFacts | None, complaint: str
) -> None:
    """Going on would lose, repeat or change output."""
    with pytest.raises(RefusedError, match=complaint) as caught:
        start(last, facts)
    assert caught.value.place == PLACE
    assert caught.value.hint


def test_a_written_batch_that_is_planned_with_other_ends_is_refused() -> None:
    """Its output is final, and this checkpoint would make another state of it."""
    facts = CheckpointFacts(ONE, BatchId(6), PlannedBatch(BatchId(7), {CARS: Offset(81)}))
    with pytest.raises(RefusedError, match="partition 0 ends at 81 there and at 80 here"):
        start(marker(7), facts)
    facts = CheckpointFacts(ONE, BatchId(6), PlannedBatch(BatchId(7), {}))
    with pytest.raises(RefusedError, match="ends at no position there"):
        start(marker(7), facts)


def test_a_marker_of_a_newer_epoch_fences() -> None:
    """Somebody else has taken the fragment over, whatever the checkpoint looks like."""
    for facts in (None, checkpoint(7, 7)):
        with pytest.raises(FencedError, match="epoch 4"):
            start(marker(7, epoch=4), facts)


def test_an_adopted_marker_changes_owner_and_nothing_else() -> None:
    """The new owner's copy says what the old one said."""
    copy = adopted(marker(7, epoch=2), Epoch(3), Millis(99))
    assert copy == replace(marker(7, epoch=3), written_at_ms=Millis(99))


def test_a_first_marker_has_read_nothing() -> None:
    """Its positions are where the lane begins, for reading and for retention."""
    first = first_marker(Epoch(1), ONE, ends(0), Millis(5))
    assert first.batch == NO_BATCH
    assert first.start == first.end == first.needed == ends(0)


STEPS = ("planned", "executed", "written", "committed")


@given(st.integers(0, 5), st.sampled_from(STEPS))
def test_a_crash_at_any_step_of_any_batch_can_be_continued(batch: int, step: str) -> None:
    """And what is written already is exactly what is not written again."""
    written = step in ("written", "committed")
    last = marker(batch if written else batch - 1)
    facts = checkpoint(batch if step == "committed" else batch - 1, batch)
    expected = BatchId(batch) if step == "written" else None
    assert start(last, facts) == Continue(last, executed_only=expected)


@given(st.integers(-1, 4), st.integers(-1, 4), st.none() | st.integers(0, 5))
def test_nothing_is_ever_lost_or_repeated_by_a_start_that_is_allowed(
    written: int, committed: int, planned: int | None
) -> None:
    """The first batch that runs with output is the one after the marker's, in every case."""
    try:
        found = start(marker(written), checkpoint(committed, planned))
    except RefusedError:
        return
    if isinstance(found, BeginAt):
        first_run, skipped = 0, None
    else:
        assert isinstance(found, Continue)
        first_run, skipped = committed + 1, found.executed_only
    first_written = first_run + 1 if skipped == first_run else first_run
    assert first_written == written + 1

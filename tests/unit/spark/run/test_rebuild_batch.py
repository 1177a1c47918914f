"""Batches of a rebuild."""

from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from pipeline.errors import BrokenInvariantError, RefusedError
from pipeline.ids import BatchId, Millis, Offset, SchemaHandle, SchemaId
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.rebuild_pieces import Pieces, RebuildPlan
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CommittedState
from pipeline.markers.positions import Positions
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.run.rebuild import Rebuilding
from pipeline.spark.run.rebuild_batch import RebuildBatches
from pipeline.spark.run.steered_query import Answer
from tests.unit.spark.run.test_rebuild import AT, DONE, MARKER, Registry, gone, tolls


@dataclass
class Executed:
    """Rows that are executed by writing them nowhere, and the facts of their batch."""

    facts: BatchFacts
    saved: int = 0

    @property
    def write(self) -> "Executed":
        """As of a frame."""
        return self

    def format(self, name: str) -> "Executed":
        """Only this format publishes nothing."""
        assert name == "noop"
        return self

    def mode(self, _: str) -> "Executed":
        """As of a writer."""
        return self

    def save(self) -> None:
        """Execute."""
        self.saved += 1

    def batch_facts(self, batch: int) -> BatchFacts:
        """As of an engine, after the execution."""
        assert (self.saved, batch) == (1, self.facts.batch)
        return self.facts


@dataclass
class Look:
    """An inspector that finds these records, and records where it was asked to look."""

    found: list[Rejected] = field(default_factory=list)
    asked: list[tuple[Positions, Positions, Millis | None]] = field(default_factory=list)
    lowered = tolls()

    def rejected(
        self, start: Positions, end: Positions, late_ms: Millis | None, *_: object
    ) -> list[Rejected]:
        """See `Inspector`."""
        self.asked.append((start, end, late_ms))
        return self.found

    def unknown_schemas(self, start: Positions, end: Positions, _: object) -> tuple[SchemaHandle]:
        """See `Inspector`."""
        self.asked.append((start, end, None))
        return (SchemaId(7),)


def at(offset: int) -> Positions:
    """A position in the one partition."""
    return {AT: Offset(offset)}


def batches(start: Rebuild, *, first: int = 0) -> RebuildBatches:
    """A rebuild in two pieces."""
    pieces = Pieces(at(0), at(5), 2)
    plan = RebuildPlan(pieces, (None, Millis(9)), BatchId(first))
    todo = Rebuilding(start, at(0), ())
    return RebuildBatches(todo, plan, cast("Any", Registry()), "here", lambda _: None)


LOG = Rebuild(MARKER, at(0), Millis(9), "gone")
CHOSEN = replace(LOG, begin=None, chosen=True)
OLDER = replace(LOG, since=CommittedState(BatchId(3), at(0), None))
ONE = replace(DONE, end=at(2))
TWO = replace(DONE, batch=BatchId(1), end=at(5), eviction_ms=Millis(9))


def write(todo: RebuildBatches, facts: BatchFacts, look: Look | None = None) -> None:
    """Execute a batch with these facts."""
    executed = cast("Any", Executed(facts))
    todo.write(cast("Any", look or Look()), executed, facts.batch, executed)


def test_batches_are_planned_one_after_the_other() -> None:
    """Each after the one before was checked; then the query ends."""
    todo, finished = batches(LOG), list[int]()
    todo.finished = finished.append
    assert todo.next() == Answer(at(2), None)
    write(todo, ONE)
    assert todo.next() == Answer(at(5), Millis(9))
    write(todo, TWO)
    assert todo.next() is None
    assert finished == [1, 2]


def test_a_batch_that_differs_from_its_plan_is_not_done() -> None:
    """It stops the lane."""
    todo = batches(LOG)
    for facts in (TWO, replace(ONE, end=at(5)), replace(ONE, eviction_ms=Millis(9))):
        with pytest.raises(BrokenInvariantError, match="the rebuilt state is not right"):
            write(todo, facts)
    assert todo.done == 0


def test_a_batch_is_repeated_with_a_new_schema() -> None:
    """Of its own records."""
    todo, look = batches(LOG), Look()
    write(todo, ONE)
    with pytest.raises(UnknownSchemasError):
        write(todo, replace(TWO, unknown=(SchemaId(7),)), look)
    assert (todo.done, look.asked) == (1, [(at(2), at(5), None)])
    write(todo, TWO)
    assert todo.next() is None


def test_accepted_records_are_looked_for_in_the_batch_alone() -> None:
    """A refused one names its offset."""
    todo, look = batches(LOG), Look([gone(3)])
    write(todo, ONE)
    with pytest.raises(RefusedError, match="offset 3"):
        write(todo, replace(TWO, bad=1), look)
    assert look.asked == [(at(2), at(5), None)]


def test_a_chosen_rebuild_keeps_what_each_batch_refuses() -> None:
    """And the largest event times of all."""
    todo = batches(CHOSEN)
    write(todo, replace(ONE, bad=1, failed={}, largest={AT: Millis(8)}), Look([gone(1)]))
    write(todo, replace(TWO, bad=1, failed={}, largest={AT: Millis(6)}), Look([gone(3)]))
    assert [one.offset for one in todo.refused] == [1, 3]
    assert todo.todo.start.marker.progress == {AT: 8}


@pytest.mark.parametrize(
    ("start", "found", "is_right"),
    [
        (OLDER, [gone(1, "only", Reason.PARTLY_LATE)], True),
        (OLDER, [gone(1, "only", Reason.PARTLY_LATE), gone(1)], True),
        (OLDER, [gone(1, "only", Reason.PARTLY_LATE), gone(0, "only", Reason.LATE)], False),
        (OLDER, [], False),
        (LOG, [gone(1, "only", Reason.PARTLY_LATE)], False),
    ],
)
def test_only_a_record_that_was_partly_late_after_a_checkpoint_may_be(
    start: Rebuild, found: list[Rejected], *, is_right: bool
) -> None:
    """It is in no dead letter that leaves it out; from the log, nothing is late at all."""
    todo, look = batches(start, first=4), Look(found)
    facts = replace(ONE, batch=BatchId(4), late=2, late_ms=Millis(7))
    if is_right:
        write(todo, facts, look)
    else:
        with pytest.raises(BrokenInvariantError, match="rows counted as late"):
            write(todo, facts, look)
    assert look.asked == ([(at(0), at(2), 7)] if start is OLDER else [])

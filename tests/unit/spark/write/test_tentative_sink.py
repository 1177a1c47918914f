"""Sink of a fork: passes results on, and writes nothing."""

from dataclasses import dataclass, field, replace

import pytest

from pipeline.boundaries.next_batch import Batch as Planned
from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import Incarnation, Millis, Offset
from pipeline.markers.gap import Gap
from pipeline.network.boxes.shape import Shape, Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.write.tentative_sink import ForkBatch, TentativeSink
from tests.unit.deploy.twins import TwinClock
from tests.unit.spark.write.sink_twins import AT, Batch, Plans, Schemas, facts, first, stateless

TEN: Shape = Windowed(TumblingWindow(size_ms=10, offset_ms=0))


@dataclass
class Fork:
    """A sink at the first marker of a lane, and what it has passed on."""

    plans: Plans = field(default_factory=Plans)
    schemas: Schemas = field(default_factory=Schemas)
    passed: list[ForkBatch] = field(default_factory=list)
    wrong: Exception | None = None
    clock: TwinClock = field(default_factory=TwinClock)
    shape: Shape = TEN

    def __post_init__(self) -> None:
        """Make the sink."""
        self.first = first(stateless())
        self.sink = TentativeSink(
            self.first, self.shape, self.plans, self.schemas, self.publish, self.clock
        )

    def publish(self, batch: ForkBatch) -> None:
        """Take it in."""
        if self.wrong is not None:
            raise self.wrong
        self.passed.append(batch)

    def write(self, batch: Batch) -> None:
        """Execute a batch."""
        self.sink.write(batch, batch.facts.batch, batch, batch)


def test_results_are_passed_on_with_the_marker_after_them() -> None:
    """Its promise is that of the watermark, as in the stable lane."""
    fork = Fork()
    batch = facts(0, 5, eviction_ms=Millis(30), largest={AT: Millis(40)})
    fork.write(Batch(batch, [(b"a", 20, None), (b"b", 30, None)], ids=[b"1", b"2"]))
    (found,) = fork.passed
    assert [row[1] for row in found.results.identified(1)] == [b"a", b"b"]
    assert found.marker == fork.sink.marker
    assert (found.marker.batch, found.marker.end[AT], found.marker.progress[AT]) == (0, 5, 40)
    assert (found.marker.eviction_ms, found.marker.boundary_ms) == (30, 39)
    assert found.marker.epoch == fork.first.epoch
    assert not fork.sink.undecided


def test_what_the_stable_lane_withholds_is_not_passed_on() -> None:
    """A deploy may give a fragment a bound while a gap of its amnesia is still open."""
    fork = Fork()
    gap = Gap(Incarnation("one"), (), None, Millis(5), Millis(25), Millis(1))
    fork.sink = TentativeSink(
        replace(fork.first, gap=gap), TEN, fork.plans, fork.schemas, fork.publish, fork.clock
    )
    fork.write(Batch(facts(0, 5), [(b"a", 20, None), (b"b", 30, None)], ids=[b"1", b"2"]))
    assert [row[1] for row in fork.passed[0].results.identified(1)] == [b"b"]


def test_what_has_failed_is_for_the_stable_lane() -> None:
    """No result, no dead letter; later batches follow."""
    fork = Fork()
    fork.write(Batch(facts(0, 5), [(b"{}", 20, "evaluation_failed:1"), (b"b", 30, None)]))
    fork.write(Batch(facts(1, 7)))
    assert [one.results.table.num_rows for one in fork.passed] == [1, 0]
    assert [one.marker.batch for one in fork.passed] == [0, 1]
    assert fork.sink.marker.letters_from == fork.first.letters_from
    assert fork.plans.executed_batches == [(-1, 0), (0, 1)]


def test_a_batch_that_was_not_planned_is_not_passed_on() -> None:
    """The fork ends."""
    fork = Fork(Plans(wrong=BrokenInvariantError("planned up to offset 4")))
    with pytest.raises(BrokenInvariantError, match="offset 4"):
        fork.write(Batch(facts(0, 5), [(b"a", 20, None)]))
    assert (fork.passed, fork.sink.marker) == ([], fork.first)


def test_a_batch_with_a_new_schema_is_executed_again_with_it() -> None:
    """Nothing of it is passed on before."""
    fork = Fork()
    with pytest.raises(UnknownSchemasError):
        fork.write(Batch(facts(0, 5, unknown=(9,)), [(b"a", 20, None)]))
    assert (fork.passed, fork.sink.marker) == ([], fork.first)
    fork.write(Batch(facts(0, 5), [(b"a", 20, None), (b"b", 20, None)]))
    assert fork.passed[0].results.table.num_rows == 2


def test_a_schema_that_nobody_has_is_for_the_stable_lane() -> None:
    """It is not recorded: the records are dead letters of the stable lane."""
    fork = Fork(schemas=Schemas(there=()))
    fork.write(Batch(facts(0, 5, unknown=(9,)), [(b"a", 20, None)]))
    assert len(fork.passed) == 1
    assert fork.schemas.missing == []


def test_what_was_not_published_is_not_executed() -> None:
    """The fork ends with the error."""
    fork = Fork(wrong=RetryError("not delivered"))
    with pytest.raises(RetryError, match="not delivered"):
        fork.write(Batch(facts(0, 5), [(b"a", 20, None)]))
    assert fork.sink.marker == fork.first


def test_without_state_event_time_is_passed_on() -> None:
    """With a batch as it was planned, or alone."""
    fork = Fork(Plans(event_ms=Millis(30)), shape=Stateless())
    fork.write(Batch(facts(0, 5), [(b"a", 20, None)], ids=[b"1"]))
    fork.sink.pass_on(Millis(40))
    assert [one.marker.boundary_ms for one in fork.passed] == [30, 40]
    last = fork.passed[-1]
    assert (last.marker, last.elapsed_ms) == (fork.sink.marker, None)
    assert (last.marker.batch, list(last.results.identified(1))) == (0, [])
    fork.wrong = RetryError("not delivered")
    with pytest.raises(RetryError):
        fork.sink.pass_on(Millis(50))
    assert fork.sink.marker == last.marker


def test_a_batch_may_begin_beyond_the_end_of_the_last_one() -> None:
    """Its marker has no hole: it says where the batch began."""
    fork = Fork()
    fork.sink.plan(Planned({AT: Offset(9)}, None, {AT: Offset(7)}))
    assert (fork.sink.begun.end[AT], fork.sink.marker) == (7, fork.first)
    fork.write(Batch(facts(0, 9)))
    assert (fork.sink.marker.start[AT], fork.sink.marker.end[AT]) == (7, 9)
    assert fork.sink.begun == fork.sink.marker


def test_a_batch_that_is_planned_anew_begins_where_its_new_plan_says() -> None:
    """The first plan was withdrawn, since its records could not be read."""
    fork = Fork()
    fork.sink.plan(Planned({AT: Offset(9)}, None, {AT: Offset(7)}))
    fork.sink.plan(Planned({AT: Offset(4)}, None))
    fork.write(Batch(facts(0, 4)))
    assert fork.sink.marker.start == fork.first.end

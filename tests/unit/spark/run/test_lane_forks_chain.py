"""Forks whose results are read by forks, and that read tentative results of their inputs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from pipeline.boundaries.deadline import Since
from pipeline.boundaries.derived import PendingBoundary, WriterSeen
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, Steered, begin, writer_of
from pipeline.boundaries.profile import DerivedInput, LaneProfile, profile
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.clock import steady_ms
from pipeline.ids import Millis, Offset, StreamName, TopicId, TopicName
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.markers.positions import InputPartition
from pipeline.spark.run import lane_forks
from pipeline.spark.run.upstreams import Upstreams
from pipeline.spark.write.tentative_sink import ForkBatch
from pipeline.tentative.progress import Progress, progress_of
from tests.unit.boundaries.support import marker
from tests.unit.kafka import create
from tests.unit.planner.passes.test_follow_tentative import BIG, BOUND, COUNTS, MOST, OUTPUTS
from tests.unit.planner.passes.test_share_box_settings import fragment, planned
from tests.unit.spark.run.fork_world import FakeFork, World, forks_of
from tests.unit.spark.run.test_lane_settings import settings

TAKEN = TentativeInput(
    stream=StreamName("counts"),
    stable=TopicName("counts"),
    topic=TopicName("counts.tentative"),
    generation="1.1",
    cut_ms=Millis(9),
    begin={0: Offset(0)},
    complete=PendingBoundary(Millis(29), {0: Offset(5)}),
)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeFork]]:
    """The forks that were begun."""
    made: list[FakeFork] = []
    monkeypatch.setattr(FakeFork, "made", made, raising=False)
    monkeypatch.setattr(FakeFork, "wrong", None, raising=False)
    monkeypatch.setattr(lane_forks, "Fork", FakeFork)
    yield made
    for one in made:
        one.ends.set()


def read_by_forks() -> World:
    """A lane whose output forks read."""
    world = World()
    output = replace(world.fragment.output, tentative=True)
    world.fragment = replace(world.fragment, output=output)
    lane = replace(settings(None), fragment=world.fragment, topic_ids={world.output: world.id})
    world.forks = forks_of(lane, world.host, world.planner)
    world.forks._keep(world.marker(0, None))
    return world


def reports(world: World) -> list[Progress]:
    """What the readers of the output are told."""
    log = world.kafka.topics[world.tentative].partitions[0].log
    found = (progress_of(one, TopicId(world.id)) for one in log)
    return [one for one in found if one is not None]


def promising(batch: ForkBatch, at_ms: int) -> ForkBatch:
    """The same batch, with a boundary."""
    return replace(batch, marker=replace(batch.marker, boundary_ms=Millis(at_ms)))


def test_readers_learn_what_is_held_back_and_how_far_the_fork_is(forks: list[FakeFork]) -> None:
    """First that a fork is being begun, then what is complete, in the order of event time."""
    world = read_by_forks()
    world.forks._announce()
    assert reports(world) == []
    assert world.look(7.0, 30, 5) is ForkPhase.PREPARING
    world.forks._announce()
    (first,) = reports(world)
    assert (str(first.generation), first.partitions) == ("3.1", 1)
    assert (first.begins_ms, first.complete_ms) == (-1, -1)
    assert [one.event_ms for one in first.held] == [39]
    assert first.held[0].held_ms >= 5_500
    fork = forks[-1]
    fork.publish(promising(world.batch(), 9))
    assert world.look(3.5, 30, 5) is ForkPhase.PUBLISHING
    fork.publish(promising(world.batch(("b", 20), ("a", 10)), 29))
    last = reports(world)[-1]
    assert (last.begins_ms, last.complete_ms) == (9, 29)
    log = world.kafka.topics[world.tentative].partitions[0].log
    assert [one.timestamp_ms for one in log if one.value is not None] == [10, 20]
    fork.publish(promising(world.batch(), 39))
    assert reports(world)[-1].complete_ms == 39


def test_results_that_are_stable_already_are_not_complete(forks: list[FakeFork]) -> None:
    """Readers find them in the stable topic."""
    world = read_by_forks()
    assert world.look(7.0, 30, 5) is ForkPhase.PREPARING
    fork = forks[-1]
    fork.publish(promising(world.batch(), 9))
    assert world.look(3.5, 30, 5) is ForkPhase.PUBLISHING
    fork.publish(promising(world.batch(("a", 10), ("b", 20)), 29))
    world.promise(1, 20)
    world.forks._settle_if_due()
    fork.publish(promising(world.batch(("c", 20), ("d", 30)), 39))
    last = reports(world)[-1]
    assert (last.begins_ms, last.complete_ms) == (20, 39)


def test_nobody_is_told_if_no_fork_reads(forks: list[FakeFork]) -> None:
    """The tentative topic has results, undos and done marks only."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(promising(world.batch(("a", 10)), 29))
    world.forks._announce()
    assert reports(world) == []


class PassingWorld(World):
    """A lane without state that passes counts on, of which some are held back; forks read it."""

    def __post_init__(self) -> None:
        """With its own fragment and topics."""
        super().__post_init__()
        bound = BOUND.replace("3s", "10s")
        self.fragment = fragment(planned(COUNTS + BIG + MOST, f"{bound}\n{OUTPUTS}"), "big")
        self.output = self.fragment.output.topic
        self.tentative = TopicName(f"{self.output}.tentative")
        create(self.kafka, self.output, self.tentative)
        self.id = self.kafka.topics[self.output].topic_id
        (counts,) = self.fragment.inputs
        ids = {self.output: self.id, counts.topic: "counts-1"}
        lane = replace(settings(None), fragment=self.fragment, topic_ids=ids)
        self.forks = forks_of(lane, self.host, self.planner)
        self.forks._keep(self.marker(0, 9))
        (self.input,) = profile(self.fragment, ids, lane.life).inputs
        self.upstreams = FakeUpstreams()
        self.forks._upstreams = cast("Upstreams", self.upstreams)
        self.since_ms = steady_ms(self.clock)
        self.upstreams.awaited = {self.input.stream: (Since(Millis(29), self.since_ms),)}

    def time(self, *_: int | None, event_ms: int = 9) -> tuple[LaneTime, Ends]:
        """It has read all stable counts, and their boundary."""
        assert isinstance(self.input, DerivedInput)
        end = {InputPartition(self.input.stream, self.input.topic, 0): Offset(5)}
        first = marker(end, boundary_ms=event_ms)
        writers = {writer_of(self.input): WriterSeen(covered_ms=Millis(event_ms))}
        now_ms = steady_ms(self.clock)
        time = begin(LaneProfile((self.input,), self.fragment.shape), first, writers, now_ms)
        return time, Ends(now_ms, {self.input.topic: {0: Offset(5)}})

    def taken(self, fork: FakeFork) -> None:
        """The fork has taken the tentative counts over."""
        time, ends = self.time()
        fork.observed = (replace(time, taken={self.input.stream: TAKEN}), ends)


def test_without_state_only_what_is_made_of_tentative_records_is_published(
    forks: list[FakeFork],
) -> None:
    """They are offered after the deadline, and come in the order of event time after the cut."""
    world = PassingWorld()
    world.upstreams.found = (TAKEN,)
    assert world.look(7.0) is ForkPhase.PREPARING
    (fork,) = forks
    fork.observed = world.time()
    fork.publish(promising(world.batch(("before", 20)), 9))
    assert world.look(1.0) is ForkPhase.READY
    assert not fork.steers[-1].tentative
    assert world.look(2.0) is ForkPhase.PUBLISHING
    assert fork.steers[-1].tentative == (TAKEN,)
    fork.publish(promising(world.batch(("stable", 20)), 9))
    assert (world.kinds, reports(world)[-1].complete_ms) == ([], -1)
    world.taken(fork)
    fork.publish(promising(world.batch(("c", 30), ("b", 20), ("a", 10)), 29))
    log = world.kafka.topics[world.tentative].partitions[0].log
    assert [one.timestamp_ms for one in log if one.value is not None] == [10, 20]
    last = reports(world)[-1]
    assert (last.begins_ms, last.complete_ms) == (9, 29)
    fork.publish(promising(replace(world.batch(), elapsed_ms=None), 39))
    assert world.kinds == ["TentativeResult"] * 3
    assert reports(world)[-1].complete_ms == 39


def test_without_state_nothing_is_tentative_unless_an_input_is(forks: list[FakeFork]) -> None:
    """A missing partition of another input begins no fork."""
    world = PassingWorld()
    world.forks._counted = frozenset({StreamName("others")})
    assert world.look(30.0) is ForkPhase.ABSENT
    assert forks == []


class FakeUpstreams:
    """Offers what the test says."""

    def __init__(self) -> None:
        self.found: tuple[TentativeInput, ...] | None = ()
        self.topics: dict[StreamName, object] = {}
        self.awaited: dict[StreamName, object] = {}

    def offers(self, _stable: LaneTime, _fork: LaneTime) -> tuple[TentativeInput, ...] | None:
        """What the test says."""
        return self.found


def test_a_fork_is_offered_tentative_records_and_ends_with_them(forks: list[FakeFork]) -> None:
    """They stay offered while it is steered otherwise; then another one begins."""
    world, upstreams = World(), FakeUpstreams()
    world.forks._upstreams = cast("Upstreams", upstreams)
    fork = world.publishing(forks)
    fork.observed = world.time(30, 5)
    upstreams.found = (TAKEN,)
    assert world.look(0.5, 30, 5) is ForkPhase.PUBLISHING
    assert fork.steers[-1].tentative == (TAKEN,)
    assert fork.steers[-1] == replace(fork.steers[-2], tentative=(TAKEN,))
    upstreams.found = None
    assert world.look(0.5, 30, 5) is ForkPhase.ABSENT
    assert fork.asked.is_set()
    world.ended(fork)
    upstreams.found = ()
    assert world.look(1.0, 30, 5) is ForkPhase.PREPARING
    assert len(forks) == 2
    assert forks[-1].steers[0].tentative == Steered().tentative

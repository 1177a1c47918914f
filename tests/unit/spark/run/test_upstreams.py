"""Tentative topics of a lane's inputs, followed on a thread of its own."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

import pytest

from pipeline.boundaries.derived import PendingBoundary, WriterSeen
from pipeline.boundaries.lane_time import LaneTime, begin
from pipeline.boundaries.profile import profile
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicId, TopicName
from pipeline.lanes.result_headers import GENERATION
from pipeline.markers.positions import InputPartition
from pipeline.spark.query.lowered import AssignedTopic, TopicRole
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.upstreams import Upstreams
from pipeline.system_clock import SystemClock
from pipeline.tentative.generation import Generation
from pipeline.tentative.progress import HeldBoundary, Progress
from pipeline.tentative.records import TentativeResult, encode
from tests.conftest import WaitFor
from tests.unit.boundaries.support import START_MS, marker
from tests.unit.kafka import Leaderless, create
from tests.unit.planner.passes.test_follow_tentative import BOUND, COUNTS, SUMS
from tests.unit.planner.passes.test_share_box_settings import fragment, planned
from tests.unit.spark.run.test_lane_settings import settings

FIRST, SECOND = Generation(Epoch(1), 1), Generation(Epoch(1), 2)


@dataclass
class World:
    """A lane of sums, and the tentative topic of the counts that it reads."""

    kafka: Leaderless = field(default_factory=lambda: Leaderless(SystemClock()))

    def __post_init__(self) -> None:
        """Create the topics."""
        self.fragment = fragment(planned(COUNTS + SUMS, BOUND), "sums")
        (self.stream,) = self.fragment.inputs
        self.topic = TopicName(f"{self.stream.topic}.tentative")
        create(self.kafka, self.stream.topic, self.topic)
        self.id = TopicId(self.kafka.topics[self.stream.topic].topic_id)
        lane = replace(
            settings(None), fragment=self.fragment, topic_ids={self.stream.topic: self.id}
        )
        self.profile = profile(self.fragment, lane.topic_ids, lane.life)
        host = SimpleNamespace(
            kafka=self.kafka, resolver=SimpleNamespace(admin=self.kafka), clock=self.kafka.clock
        )
        self.upstreams = Upstreams(lane, cast("LaneHost", host))

    def result(self, at_ms: int, generation: Generation = FIRST) -> None:
        """A tentative result."""
        made = TentativeResult(b"k", b"v", Millis(at_ms), 0, b"%d" % at_ms, generation)
        sent = encode(made, self.id)
        self.kafka.append(
            self.topic, sent.key, sent.value, timestamp_ms=at_ms, headers=sent.headers
        )

    def progress(self, begins: int, complete: int, generation: Generation = FIRST) -> None:
        """How far the generation is."""
        waits = (HeldBoundary(Millis(complete), 500),)
        made = Progress(generation, 1, Millis(begins), Millis(complete), waits)
        self.kafka.append(self.topic, None, None, timestamp_ms=1, headers=made.headers(self.id))

    def time(self, covered_ms: int, *pending: int) -> LaneTime:
        """A lane that has read stable counts up to a boundary."""
        end = {InputPartition(self.stream.name, self.stream.topic, 0): Offset(3)}
        more = tuple(PendingBoundary(Millis(ms), {0: Offset(9)}) for ms in pending)
        seen = WriterSeen(Epoch(1), Millis(covered_ms), more)
        found = begin(self.profile, marker(end), {}, SteadyMillis(START_MS))
        return replace(found, writers={self.stream.name: seen})


@pytest.fixture
def world() -> Iterator[World]:
    """Two results, complete from 9 to 29; it is followed."""
    world = World()
    world.result(10)
    world.result(20)
    world.progress(9, 29)
    yield world
    world.upstreams.end()


def test_what_is_there_is_offered(world: World, wait_for: WaitFor) -> None:
    """From the cut of the fork on; what its writer holds back is awaited."""
    assert world.upstreams.offers(world.time(19), world.time(19)) == ()
    world.upstreams.begin()
    wait_for(lambda: bool(world.upstreams.awaited), "it is read")
    (found,) = world.upstreams.offers(world.time(19), world.time(19)) or ()
    assert (found.begin, found.complete.boundary_ms) == ({0: 1}, 29)
    (awaited,) = world.upstreams.awaited[world.stream.name]
    assert awaited.event_ms == 29
    expected = AssignedTopic(world.topic, 1, TopicRole.TENTATIVE)
    assert world.upstreams.topics == {world.stream.name: expected}
    assert GENERATION in dict(world.kafka.topics[world.topic].partitions[0].log[0].headers)


def test_what_stable_boundaries_have_passed_is_not_offered(world: World, wait_for: WaitFor) -> None:
    """Also if their records were not read yet."""
    world.upstreams.begin()
    wait_for(lambda: bool(world.upstreams.awaited), "it is read")
    assert world.upstreams.offers(world.time(19, 29), world.time(19)) == ()


@pytest.mark.parametrize("why", ["overtaken", "newer"])
def test_what_was_taken_over_becomes_outdated(world: World, wait_for: WaitFor, why: str) -> None:
    """Until then it is offered with its newest boundary."""
    world.upstreams.begin()
    wait_for(lambda: bool(world.upstreams.awaited), "it is read")
    stable, fork = world.time(19), world.time(19)
    (taken,) = world.upstreams.offers(stable, fork) or ()
    fork = replace(fork, taken={world.stream.name: taken})
    world.progress(9, 39)

    def complete_ms() -> int:
        found = world.upstreams.offers(stable, fork)
        return found[0].complete.boundary_ms if found else 0

    wait_for(lambda: complete_ms() == 39, "its boundary moves")
    if why == "newer":
        world.progress(9, 39, SECOND)
        wait_for(lambda: world.upstreams.offers(stable, fork) is None, "the next one begins")
    else:
        assert world.upstreams.offers(world.time(19, 39), fork) is None


def test_a_topic_that_cannot_be_read_is_tried_again(world: World, wait_for: WaitFor) -> None:
    """Nothing is offered until then."""
    world.kafka.leaderless = (world.topic,)
    world.upstreams.begin()
    assert world.upstreams.offers(world.time(19), world.time(19)) == ()
    world.kafka.leaderless = ()
    wait_for(lambda: bool(world.upstreams.awaited), "it is read")

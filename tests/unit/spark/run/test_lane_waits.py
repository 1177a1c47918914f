"""What a lane measures of its waits, and reports of them."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.profile import LaneInput
from pipeline.boundaries.usual_waits import MINUTE_MS, MINUTES_LEAST
from pipeline.clock import steady_ms
from pipeline.ids import Offset, SteadyMillis
from pipeline.lanes.events import LaneWaited
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_waits import LaneWaits
from tests.unit.boundaries.support import SPEED, marker, positions
from tests.unit.boundaries.test_deadline import SOON, running
from tests.unit.deploy.twins import TwinClock
from tests.unit.spark.run.fork_world import bounded
from tests.unit.spark.run.test_lane_settings import settings


@dataclass
class World:
    """A lane without a bound that finishes batches, and what it has reported."""

    inputs: tuple[LaneInput, ...] = (SOON,)
    clock: TwinClock = field(default_factory=TwinClock)
    reported: list[LaneWaited] = field(default_factory=list)

    def __post_init__(self) -> None:
        """A lane that has finished nothing."""
        self.clock.sleep(1_000)
        self.lane = replace(settings(None), fragment=bounded(None))
        self.planner = SimpleNamespace(observed=None)
        host = SimpleNamespace(clock=self.clock, report=self.reported.append)
        self.host = cast("LaneHost", host)
        self.waits = LaneWaits(self.lane, self.host, cast("LanePlanner", self.planner))

    def finish(self, *progress: int, event_ms: int, after_ms: int) -> None:
        """Finish a batch so long after the one before; it is planned just before that."""
        self.clock.sleep(after_ms / 1_000)
        now_ms = steady_ms(self.clock)
        time: LaneTime = running(progress, event_ms, *self.inputs)
        ends = {one.topic: {n: Offset(5) for n in range(len(progress))} for one in self.inputs}
        time = replace(time, read_until_ms=SteadyMillis(now_ms))
        self.planner.observed = time, Ends(now_ms, ends)
        self.waits.finished(marker(positions(SOON, 5, 5)), 100)

    def go(self, minutes: int, wait_ms: int) -> None:
        """Each second the second partition comes so long after the first one."""
        at = 100
        for _ in range(minutes * MINUTE_MS // 1_000):
            self.finish(at + 50, at, event_ms=at - 1, after_ms=1_000 - wait_ms)
            at += 50
            self.finish(at, at, event_ms=at - 1, after_ms=wait_ms)


def test_what_is_usual_is_reported_once_it_was_measured_for_some_minutes() -> None:
    """With the lane and its run; again when it has changed."""
    world = World()
    world.go(MINUTES_LEAST - 1, 700)
    assert world.reported == []
    world.go(2, 700)
    first = world.reported[0]
    assert (first.lane, first.run) == (world.lane.lane, world.lane.run)
    assert (first.waits.usual_ms, first.waits.longest_ms) == (700, 700)
    assert [one.waits.minutes for one in world.reported] == [MINUTES_LEAST, MINUTES_LEAST + 1]


def test_a_lane_without_external_inputs_measures_nothing() -> None:
    """What is missing there is missing at its writers."""
    world = World(inputs=(SPEED,))
    for _ in range(20):
        world.finish(event_ms=9, after_ms=MINUTE_MS)
    assert world.reported == []


def test_a_lane_without_a_bound_begins_and_ends_no_fork() -> None:
    """It has none."""
    world = World()
    world.waits.begin(Path(), marker(positions(SOON, 5, 5)), LaneInputs(world.host))
    world.waits.finished(marker(positions(SOON, 5, 5)), 100)
    world.waits.request_stop()
    world.waits.end()
    assert world.reported == []

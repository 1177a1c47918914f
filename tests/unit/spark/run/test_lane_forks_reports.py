"""What a lane reports of its forks to the agent."""

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

from pipeline.availability import Availability
from pipeline.ids import TopicName
from pipeline.lanes.events import LaneTentative
from pipeline.lanes.fork_phases import ForkEvent, ForkPhase
from pipeline.lanes.tentative_state import REPORT_MS
from pipeline.spark.run.lane_host import LaneHost
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import Leaderless, create
from tests.unit.planner.passes import test_share_box_settings as planning
from tests.unit.spark.run.fork_world import forks_of
from tests.unit.spark.run.test_lane_settings import settings

COUNTS = "{aggregate: s, by: [car], window: 10ms, compute: {n: count(*)}}"


@dataclass
class World:
    """A lane whose forks do nothing by themselves, and what it has reported."""

    availability: Availability = field(default_factory=lambda: Availability(10_000))
    clock: TwinClock = field(default_factory=TwinClock)
    reported: list[LaneTentative] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the topics of the lane."""
        fragment = planning.fragment(planning.planned(f"  f: {COUNTS}\n"), "f")
        fragment = replace(fragment, availability=self.availability)
        output, kafka = fragment.output.topic, Leaderless(self.clock)
        create(kafka, output, TopicName(f"{output}.tentative"))
        ids = {output: kafka.topics[output].topic_id}
        self.lane = replace(settings(None), fragment=fragment, topic_ids=ids)
        host = SimpleNamespace(
            kafka=kafka,
            resolver=SimpleNamespace(admin=kafka),
            clock=self.clock,
            report=self.reported.append,
        )
        self.forks = forks_of(self.lane, cast("LaneHost", host), SimpleNamespace(observed=None))

    def look(self, ms: int = 0) -> list[ForkPhase]:
        """Report after so long; the phases that were reported so far."""
        self.clock.sleep(ms / 1000)
        self.forks._report()
        return [one.state.phase for one in self.reported]


def test_each_phase_is_reported_at_once_and_otherwise_what_changes() -> None:
    """Of the present run, with the time of the phase."""
    world = World()
    assert world.look() == [ForkPhase.ABSENT]
    assert world.look(2 * REPORT_MS) == [ForkPhase.ABSENT]
    world.forks._move(ForkEvent.DUE)
    assert world.look() == [ForkPhase.ABSENT, ForkPhase.PREPARING]
    first, second = world.reported
    assert (second.lane, second.run) == (world.lane.lane, world.lane.run)
    assert second.state.since_ms - first.state.since_ms == 2 * REPORT_MS
    world.forks._problem = "no room"
    assert len(world.look(REPORT_MS - 1)) == 2
    assert len(world.look(1)) == 3
    assert world.reported[-1].state.problem == "no room"

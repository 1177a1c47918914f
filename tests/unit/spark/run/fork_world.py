"""A stable lane as its forks see it, and forks that are told what happens to them."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import cast

from pipeline.availability import Availability
from pipeline.boundaries.deadline import Watch
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, Steered
from pipeline.clock import steady_ms
from pipeline.ids import Offset, TopicId, TopicName
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment
from pipeline.spark.run.fork import StableState
from pipeline.spark.run.lane_forks import LaneForks, new_forks
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.write.tentative_sink import ForkBatch
from pipeline.tentative.records import DoneMark, TentativeResult, Undo, decode
from tests.unit.boundaries.support import marker, positions
from tests.unit.boundaries.test_deadline import SOON, running
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import Leaderless, create
from tests.unit.planner.passes import test_share_box_settings as planning
from tests.unit.spark.batch.test_results import results
from tests.unit.spark.run.test_lane_settings import settings

X_MS = 10_000
"""A batch takes 0.5 s, and a fork 3 s until it is ready: one begins after 5.5 s, and publishes
after 8.5 s."""
WITHIN_S = 30.0
COUNTS = "{aggregate: s, by: [car], window: 10ms, compute: {n: count(*)}}"


class FakeFork:
    """A fork that is told what happens to it."""

    made: list["FakeFork"]
    wrong: Exception | None

    def __init__(
        self,
        _settings: object,
        _host: object,
        stable: StableState,
        steered: Steered,
        publish: Callable[[ForkBatch], None],
    ) -> None:
        if self.wrong is not None:
            raise self.wrong
        self.stable = stable
        self.steers = [steered]
        self.publish = publish
        self.observed: tuple[LaneTime, Ends | None] | None = None
        self.asked = threading.Event()
        self.ends = threading.Event()
        self.error: Exception | None = None
        self.made.append(self)

    def steer(self, steered: Steered) -> None:
        """Record it."""
        self.steers.append(steered)

    def request_stop(self) -> None:
        """Record it; the test lets it end."""
        self.asked.set()

    def run(self) -> None:
        """Run until the test lets it end."""
        assert self.ends.wait(WITHIN_S)
        if self.error is not None:
            raise self.error


def bounded(availability: Availability | None) -> Fragment:
    """A fragment that counts in windows."""
    planned = planning.fragment(planning.planned(f"  f: {COUNTS}\n"), "f")
    return replace(planned, availability=availability)


def forks_of(lane: LaneSettings, host: LaneHost, planner: object) -> LaneForks:
    """The forks of a lane whose fragment may have tentative results."""
    found = new_forks(lane, host, cast("LanePlanner", planner))
    assert found is not None
    return found


@dataclass
class World:
    """A stable lane, as its forks see it, and their topic."""

    availability: Availability = field(default_factory=lambda: Availability(X_MS))
    clock: TwinClock = field(default_factory=TwinClock)

    def __post_init__(self) -> None:
        """Begin to look, but without a thread."""
        self.clock.sleep(1_000)
        self.fragment = bounded(self.availability)
        self.output = self.fragment.output.topic
        self.tentative = TopicName(f"{self.output}.tentative")
        self.kafka = Leaderless(self.clock)
        create(self.kafka, self.output, self.tentative)
        self.id = self.kafka.topics[self.output].topic_id
        lane = replace(settings(None), fragment=self.fragment, topic_ids={self.output: self.id})
        self.planner = SimpleNamespace(observed=None)
        host = SimpleNamespace(
            kafka=self.kafka,
            resolver=SimpleNamespace(admin=self.kafka),
            clock=self.clock,
            report=lambda _: None,
        )
        self.host = cast("LaneHost", host)
        self.forks = forks_of(lane, self.host, self.planner)
        self.forks._keep(self.marker(0, None))
        self.watch = Watch(self.availability.bound_ms)

    def marker(self, batch: int, promised: int | None) -> CommitMarker:
        """A marker of the lane."""
        return marker(positions(SOON, 5, 5), batch=batch, boundary_ms=promised)

    def promise(self, batch: int, promised: int) -> None:
        """The lane has written a batch."""
        self.forks._keep(self.marker(batch, promised))

    @property
    def phase(self) -> ForkPhase:
        """Of the fork."""
        return self.forks.state.phase

    def time(self, *progress: int | None, event_ms: int = 9) -> tuple[LaneTime, Ends]:
        """A lane that has read all, with the progress of its partitions."""
        now_ms = steady_ms(self.clock)
        ends = {SOON.topic: {n: Offset(5) for n in range(len(progress))}}
        return running(progress, event_ms), Ends(now_ms, ends)

    def look(self, seconds: float, *progress: int | None, event_ms: int = 9) -> ForkPhase:
        """Look each half second for so long."""
        for _ in range(max(1, round(2 * seconds))):
            self.clock.sleep(min(seconds, 0.5))
            self.planner.observed = self.time(*progress, event_ms=event_ms)
            self.watch = self.forks._looked(self.watch)
            self.forks._settle_if_due()
        return self.phase

    def batch(self, *rows: tuple[str, int], elapsed_ms: int = 500) -> ForkBatch:
        """A batch of a fork."""
        made = [(name.encode(), b"v", ms, None) for name, ms in rows]
        found = results(*made, ids=tuple(name.encode() for name, _ in rows))
        return ForkBatch(self.marker(1, None), found, elapsed_ms)

    def publishing(self, forks: list[FakeFork]) -> FakeFork:
        """A fork that publishes: partition 1 has stayed away."""
        assert self.look(7.0, 30, 5) is ForkPhase.PREPARING
        forks[-1].publish(self.batch())
        assert self.look(3.5, 30, 5) is ForkPhase.PUBLISHING
        return forks[-1]

    def ended(self, fork: FakeFork, error: Exception | None = None) -> None:
        """Let a fork end."""
        running_ = self.forks._running
        assert running_ is not None
        fork.error = error
        fork.ends.set()
        assert running_.has_ended.wait(WITHIN_S)

    @property
    def written(self) -> list[TentativeResult | Undo | DoneMark]:
        """The records of the tentative topic."""
        log = self.kafka.topics[self.tentative].partitions[0].log
        found = [decode(one, TopicId(self.id)) for one in log]
        return [one for one in found if isinstance(one, TentativeResult | Undo | DoneMark)]

    @property
    def kinds(self) -> list[str]:
        """Of these records."""
        return [type(one).__name__ for one in self.written]

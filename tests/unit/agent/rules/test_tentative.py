"""Tentative results as the agent knows, logs and reports them."""

from dataclasses import dataclass, field

from pipeline.agent.effects import LogEvent
from pipeline.boundaries.deadline import Held
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import Millis, RunNumber, SteadyMillis
from pipeline.lanes.events import LaneTentative
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.lanes.tentative_state import TentativeCounts, TentativeState
from tests.unit.agent.support import BEGAN_MS, CARS, LANE, START_MS, Agent, at, deployed

TWO = at(CARS, 1)
KINDS = {EventKind.TENTATIVE_BEGUN, EventKind.TENTATIVE_SETTLED, EventKind.TENTATIVE_FAILED}


def _since(after_ms: int) -> SteadyMillis:
    return SteadyMillis(BEGAN_MS + after_ms)


HELD = Held(_since(1_000), 1_000, 1_000, Millis(0), frozenset({TWO}))
PUBLISHED = TentativeCounts(published=7, open_results=7)


@dataclass
class World:
    """A node whose lane runs, and the entries about its tentative results."""

    agent: Agent = field(default_factory=Agent)
    logged: list[LoggedEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.agent.read_catalog(deployed())
        self.agent.started(CARS)

    def report(
        self,
        phase: ForkPhase,
        counts: TentativeCounts = PUBLISHED,
        *,
        problem: str = "",
        run: int = 1,
    ) -> None:
        """The lane has just come to this phase, if it is another one."""
        running = self.agent.lane().running
        last = None if running is None else running.tentative
        stays = last is not None and last.state.phase is phase
        since_ms = last.state.since_ms if last is not None and stays else self.agent.steady_ms
        held = HELD if phase is ForkPhase.PUBLISHING else None
        generation = "1.1" if phase is ForkPhase.PUBLISHING else None
        settled = counts.open_results == 0
        state = TentativeState(phase, since_ms, held, generation, counts, settled, problem)
        effects = self.agent.receive_all(LaneTentative(LANE, RunNumber(run), state))
        found = [one.event for one in effects if isinstance(one, LogEvent)]
        self.logged += [one for one in found if one.kind in KINDS]

    def wait(self, ms: int) -> None:
        """Let time pass."""
        self.agent.wait(ms)


def test_a_fork_that_publishes_is_logged_and_so_is_its_end() -> None:
    """With how long the results were held back, and what became of them."""
    world = World()
    world.wait(3_000)
    world.report(ForkPhase.READY, TentativeCounts())
    world.report(ForkPhase.PUBLISHING, TentativeCounts())
    (begun,) = world.logged
    assert (begun.kind, begun.fragment, begun.at_ms) == (
        "tentative-begun",
        "speed",
        START_MS + 3_000,
    )
    assert dict(begun.facts) == {"epoch": "1", "generation": "1.1", "missing": "car-sightings/1"}
    assert begun.parts_ms == (("held_back", 2_000),)
    world.wait(12_000)
    world.report(ForkPhase.PUBLISHING)
    world.report(ForkPhase.ABSENT)
    world.wait(500)
    assert len(world.logged) == 1
    world.report(ForkPhase.ABSENT, TentativeCounts(7, 4, 1, 2))
    settled = world.logged[-1]
    assert settled.kind == "tentative-settled"
    facts = {"epoch": "1", "published": "7", "confirmed": "4", "replaced": "1", "undone": "2"}
    assert dict(settled.facts) == facts
    assert settled.parts_ms == (("publishing", 12_000), ("settling", 500))
    world.report(ForkPhase.ABSENT, TentativeCounts(7, 4, 1, 2))
    assert len(world.logged) == 2


def test_a_second_time_is_counted_from_the_first_one_on() -> None:
    """Counts are those since the lane has started."""
    world = World()
    for published in (3, 8):
        world.report(ForkPhase.PUBLISHING, TentativeCounts(published, published - 2, 0, 0, 2))
        world.report(ForkPhase.ABSENT, TentativeCounts(published, published))
    found = [dict(one.facts).get("published") for one in world.logged]
    assert found == [None, "3", None, "5"]


def test_forks_that_follow_before_all_is_settled_are_one() -> None:
    """The second one is logged, but not the end of the first."""
    world = World()
    world.report(ForkPhase.PUBLISHING)
    world.wait(1_000)
    world.report(ForkPhase.ABSENT)
    world.wait(1_000)
    world.report(ForkPhase.PUBLISHING)
    world.wait(1_000)
    world.report(ForkPhase.ABSENT, TentativeCounts(7, 7))
    assert [one.kind for one in world.logged] == [
        "tentative-begun",
        "tentative-begun",
        "tentative-settled",
    ]
    assert dict(world.logged[-1].parts_ms)["publishing"] == 3_000


def test_what_an_earlier_run_has_left_is_logged_when_it_is_settled() -> None:
    """Nobody knows how long it has published."""
    world = World()
    world.report(ForkPhase.ABSENT, TentativeCounts(open_results=2))
    world.report(ForkPhase.ABSENT, TentativeCounts(confirmed=1, undone=1))
    (settled,) = world.logged
    assert (settled.why, settled.parts_ms) == ("they were left by an earlier run", ())
    assert dict(settled.facts)["published"] == "0"


def test_a_failure_is_logged_once() -> None:
    """Again, if the error is another one."""
    world = World()
    for problem in ("no room", "no room", "no broker"):
        world.report(ForkPhase.RESTING, TentativeCounts(), problem=problem)
        world.report(ForkPhase.ABSENT, TentativeCounts(), problem=problem)
    assert [(one.kind, one.why) for one in world.logged] == [
        ("tentative-failed", "no room"),
        ("tentative-failed", "no broker"),
    ]


def test_reports_of_earlier_runs_and_of_ended_lanes_are_ignored() -> None:
    """The next run begins without any."""
    world = World()
    world.report(ForkPhase.PUBLISHING, run=0)
    assert world.agent.running().tentative is None
    world.report(ForkPhase.PUBLISHING)
    world.agent.stopped("boom")
    world.report(ForkPhase.ABSENT, TentativeCounts(7, 7))
    assert [one.kind for one in world.logged] == ["tentative-begun"]
    assert world.agent.report().tentative is None


def test_the_status_of_a_fragment_has_the_latest_state() -> None:
    """Its moments are wall times; without tentative results it has none."""
    world = World()
    assert world.agent.report().tentative is None
    world.wait(3_000)
    world.report(ForkPhase.PUBLISHING)
    world.wait(1_000)
    status = world.agent.report()
    assert (status.tentative, status.tentative_generation) == (ForkPhase.PUBLISHING, "1.1")
    assert status.tentative_since_ms == START_MS + 3_000
    assert status.tentative_held_since_ms == START_MS + 1_000
    assert status.tentative_missing == ("car-sightings/1",)
    assert (status.tentative_published, status.tentative_open) == (7, 7)

"""When a takeover is logged."""

from dataclasses import dataclass, field, replace

import pytest

from pipeline.agent.effects import LogEvent
from pipeline.agent.events import Event, FragmentTaken, Tick
from pipeline.agent.rules.takeover import RESULT_MS
from pipeline.agent.suspicions import Noticed
from pipeline.agent.takeover import Takeover
from pipeline.boundaries.profile import LaneProfile
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import BatchId, Epoch, NodeId, SteadyMillis
from pipeline.lanes.events import BatchFinished, LaneStarted, LaneStopped
from pipeline.network.boxes.shape import Stateless
from tests.unit.agent.support import (
    BEGAN_MS,
    CARS,
    HERE,
    LANE,
    Agent,
    deployed,
    fresh_marker,
    read,
)

THERE = NodeId("node2")
MARKER = replace(fresh_marker(CARS, epoch=2), batch=BatchId(7))
"""Of the last batch of the owner before."""


def _at(after_ms: int) -> SteadyMillis:
    return SteadyMillis(BEGAN_MS + after_ms)


@dataclass
class World:
    """A node that claims a fragment 200 ms after it has suspected its owner."""

    agent: Agent = field(default_factory=Agent)
    logged: list[LoggedEvent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.receive(read(deployed()))
        self.agent.wait(1_200)
        noticed = Noticed("silent", _at(1_000), _at(0))
        taken = Takeover(THERE, "node node2 is suspected to have failed", noticed, _at(1_200))
        self.receive(FragmentTaken(LANE, self.agent.lane().run, taken))

    def receive(self, event: Event) -> None:
        """Feed an event, and keep the entries about takeovers."""
        found = [one.event for one in self.agent.receive_all(event) if isinstance(one, LogEvent)]
        self.logged += [one for one in found if one.kind == EventKind.TAKEN_OVER]

    def start(self) -> None:
        """The lane is fenced in 50 ms, and starts in 250."""
        fenced_ms = SteadyMillis(self.agent.steady_ms + 50)
        self.agent.wait(300)
        time = self.agent.begin(MARKER, LaneProfile((CARS,), Stateless()))
        run = self.agent.lane().run
        self.receive(LaneStarted(LANE, run, Epoch(2), MARKER, time, fenced_ms))

    def batch(self, number: int, rows_out: int, after_ms: int = 400) -> None:
        """A batch finishes."""
        self.agent.wait(after_ms)
        marker = replace(MARKER, batch=BatchId(number))
        self.receive(BatchFinished(LANE, self.agent.lane().run, marker, rows_out, 40))

    def stop(self, *, fenced: bool = False, retry: bool = True) -> None:
        """The lane ends by an error."""
        run = self.agent.lane().run
        self.receive(LaneStopped(LANE, run, Epoch(2), "boom", retry=retry, fenced=fenced))

    def tick(self, milliseconds: int) -> None:
        """Let time pass."""
        self.agent.wait(milliseconds)
        self.receive(Tick())


@pytest.fixture
def world() -> World:
    """The claim was made."""
    return World()


def test_a_takeover_is_logged_with_its_first_result(world: World) -> None:
    """Once, by parts; with the node that was lost, and how that was noticed."""
    world.start()
    world.batch(8, rows_out=0)
    assert world.logged == []
    world.batch(9, rows_out=3)
    world.batch(10, rows_out=3)
    (entry,) = world.logged
    assert (entry.node, entry.why) == (HERE, "node node2 is suspected to have failed")
    assert dict(entry.facts) == {"epoch": "2", "from": THERE, "noticed_by": "silent"}
    assert dict(entry.parts_ms) == {
        "noticed": 1_000,
        "claimed": 200,
        "fenced": 50,
        "first_batch": 650,
        "first_result": 400,
    }
    assert world.agent.lane().takeover is None


def test_a_batch_of_the_owner_that_is_executed_again_is_no_new_one(world: World) -> None:
    """Its results were there before."""
    world.start()
    world.batch(7, rows_out=3)
    assert world.logged == []
    world.batch(8, rows_out=3)
    assert dict(world.logged[0].parts_ms)["first_batch"] == 1_050


def test_a_takeover_without_a_result_is_logged_after_a_while(world: World) -> None:
    """With the first batch; before that nothing is, however long it takes."""
    world.start()
    world.tick(10 * RESULT_MS)
    assert world.logged == []
    world.batch(8, rows_out=0)
    world.tick(RESULT_MS - 1)
    assert world.logged == []
    world.tick(1)
    (entry,) = world.logged
    assert "first_result" not in dict(entry.parts_ms)


def test_a_lane_that_ends_after_its_first_batch_is_logged(world: World) -> None:
    """It waits for no result."""
    world.start()
    world.batch(8, rows_out=0)
    world.stop()
    (entry,) = world.logged
    assert [name for name, _ in entry.parts_ms][-1] == "first_batch"


def test_a_start_that_fails_is_a_part_of_the_takeover(world: World) -> None:
    """The owner before was fenced by the first one."""
    world.start()
    world.stop()
    world.tick(60_000)
    world.start()
    world.batch(8, rows_out=1)
    parts = dict(world.logged[0].parts_ms)
    assert (parts["fenced"], parts["first_batch"]) == (50, 250 + 60_000 + 300 + 400)


@pytest.mark.parametrize("fenced", [True, False])
def test_a_takeover_that_writes_nothing_is_not_logged(world: World, *, fenced: bool) -> None:
    """Another node takes over, or the lane is given up: they have their own entries."""
    world.stop(fenced=fenced, retry=False)
    assert world.agent.lane().takeover is None
    world.tick(60_000)
    assert world.logged == []


def test_a_start_without_a_takeover_is_none() -> None:
    """Such as the first one of all."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS)
    agent.finished({})
    assert agent.lane().takeover is None

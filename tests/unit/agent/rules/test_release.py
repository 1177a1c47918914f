"""Release of fragments that another node is to run, or that none has room for."""

from dataclasses import replace

from pipeline.agent.effects import (
    Effect,
    ReleaseFragment,
    SendActivity,
    StartLane,
    StopLane,
)
from pipeline.agent.events import CatalogLost, CatalogRead, Tick
from pipeline.catalog.records import OwnerRecord
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed, Leaving
from pipeline.ids import Epoch, FragmentId, FragmentName, Millis, NodeId
from pipeline.lanes.events import LaneStopped
from pipeline.priority import Priority
from tests.unit.agent.support import (
    CARS,
    HERE,
    LANE,
    SPEED,
    START_MS,
    Agent,
    deployed,
    node_record,
)
from tests.unit.planner.networks import OWNER

THERE = NodeId("node2")
VOLUME = FragmentId(SPEED.network, FragmentName("volume"))
MINE = OwnerRecord(HERE, OWNER, Epoch(1), Millis(0), START_MS)


def elsewhere(owner: OwnerRecord | None = MINE) -> CatalogRead:
    """A read of the catalog by which the other node is to run the fragment."""
    other = replace(node_record(THERE), labels=(("zone", "b"),))
    return CatalogRead(CatalogSnapshot((node_record(HERE), other), (placed_there(owner),)))


def placed_there(owner: OwnerRecord | None) -> Deployed:
    """The fragment, which only nodes with a label may run."""
    one = deployed()
    return replace(one, record=replace(one.record, nodes="zone=b"), owner=owner)


LEAVING = Leaving(MINE, THERE, placed_there(MINE).record)


def run_lane(agent: Agent) -> None:
    """Let the agent run the fragment."""
    agent.read_catalog(replace(deployed(), owner=MINE))
    agent.started(CARS)


def stopped(agent: Agent) -> tuple[Effect, ...]:
    """The lane ends, as it was asked to."""
    return agent.receive_all(
        LaneStopped(LANE, agent.lane().run, Epoch(1), None, retry=True, fenced=False)
    )


def released(effects: tuple[object, ...]) -> list[ReleaseFragment]:
    """The releases among effects."""
    return [one for one in effects if isinstance(one, ReleaseFragment)]


def test_a_fragment_is_released_when_its_lane_has_stopped() -> None:
    """Not before; with the record of the owner that the snapshot had."""
    agent = Agent()
    run_lane(agent)
    effects = agent.receive_all(elsewhere())
    assert StopLane(LANE) in effects
    assert released(effects) == []
    assert released(stopped(agent)) == [ReleaseFragment(SPEED, LEAVING)]


def test_an_idle_lane_that_leaves_is_active_for_its_readers() -> None:
    """Records that arrive while it moves are unread; one that was removed signals nothing."""
    for leaving, expected in ((True, [False]), (False, [])):
        agent = Agent()
        run_lane(agent)
        running = replace(agent.running(), idle_sent_at_ms=agent.steady_ms)
        lane = replace(agent.lane(), phase=running)
        agent.state = replace(agent.state, lanes={LANE: lane})
        gone = CatalogRead(CatalogSnapshot((node_record(HERE),), ()))
        effects = agent.receive_all(elsewhere() if leaving else gone)
        assert [one.idle for one in effects if isinstance(one, SendActivity)] == expected


def test_a_release_is_repeated_until_the_catalog_has_it() -> None:
    """With each read: the last one may have failed."""
    agent = Agent()
    for _ in range(2):
        assert released(agent.receive_all(elsewhere())) == [ReleaseFragment(SPEED, LEAVING)]
        assert released(agent.receive_all(Tick())) == []
    assert released(agent.receive_all(elsewhere(None))) == []


def test_nothing_is_released_while_the_catalog_is_in_doubt() -> None:
    """The lane that ended may be this node's again."""
    agent = Agent()
    run_lane(agent)
    agent.receive(elsewhere())
    agent.receive(CatalogLost())
    assert released(stopped(agent)) == []
    assert released(agent.receive_all(elsewhere())) == [ReleaseFragment(SPEED, LEAVING)]


def test_a_fragment_placed_here_again_is_started_again() -> None:
    """Its lane had stopped for a release that did not happen."""
    agent = Agent()
    run_lane(agent)
    agent.receive(elsewhere())
    stopped(agent)
    back = CatalogSnapshot((node_record(HERE),), (placed_there(MINE),))
    effects = agent.receive_all(CatalogRead(back))
    assert released(effects) == []
    assert any(isinstance(one, StartLane) for one in effects)


def test_a_fragment_that_no_node_has_room_for_is_released_for_none() -> None:
    """As one that another node is to run; what takes its place starts when its lane has ended."""
    agent = Agent()
    agent.state = replace(agent.state, shared=replace(agent.state.shared, most_fragments=1))
    run_lane(agent)
    here = replace(node_record(HERE), most_fragments=1)
    low, high = replace(deployed(), owner=MINE), deployed(VOLUME)
    high = replace(high, record=replace(high.record, priority=Priority.HIGH))
    both = CatalogRead(CatalogSnapshot((here,), (low, high)))
    effects = agent.receive_all(both)
    assert StopLane(LANE) in effects
    assert not any(isinstance(one, StartLane) for one in effects)
    effects = stopped(agent)
    assert released(effects) == [ReleaseFragment(SPEED, Leaving(MINE, None, low.record))]
    assert [one.lane.fragment for one in effects if isinstance(one, StartLane)] == [VOLUME]


def test_no_more_lanes_start_than_may_run() -> None:
    """Whatever is assigned: a lane that was claimed is not in the catalog that was read yet."""
    agent = Agent()
    agent.state = replace(agent.state, shared=replace(agent.state.shared, most_fragments=1))
    found = agent.read_catalog(deployed(), deployed(VOLUME))
    assert [one.fragment for one in found] == [SPEED]
    assert agent.tick() == ()
    assert [one.fragment for one in agent.stopped(retry=False)] == [VOLUME]

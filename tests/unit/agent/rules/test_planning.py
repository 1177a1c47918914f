"""Plans of network versions in an agent: requests, use and removal."""

from dataclasses import dataclass, field, replace

from pipeline.agent.decide import decide
from pipeline.agent.effects import Effect, MakePlan, StartLane
from pipeline.agent.events import CatalogRead, Event, PlanFailed, PlanMade
from pipeline.agent.now import Now
from pipeline.agent.state import NodeState, Shared, Stopped
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import OwnerRecord
from pipeline.catalog.snapshot import CatalogSnapshot, VersionId
from pipeline.errors import RefusedError, UnavailableError
from pipeline.ids import (
    Epoch,
    FragmentId,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    SteadyMillis,
)
from pipeline.planner.digest import fragment_digest
from tests.unit.agent.support import (
    HERE,
    LANE,
    LIFE,
    NETWORK,
    PLAN,
    SPEED,
    deployed,
    node_record,
    read,
)
from tests.unit.planner.networks import OWNER

ONE = VersionId(NETWORK, LIFE, NetworkVersion(1))
TWO = VersionId(NETWORK, LIFE, NetworkVersion(2))
THERE = NodeId("node2")


@dataclass
class Node:
    """An agent whose plans arrive when the test sends them."""

    state: NodeState = field(
        default_factory=lambda: NodeState(Shared(NodeId("node1"), OWNER, Millis(0)))
    )
    at_ms: int = 0

    def receive(self, event: Event) -> tuple[Effect, ...]:
        """Feed an event; the effects."""
        now = Now(Millis(self.at_ms), SteadyMillis(self.at_ms))
        self.state, effects = decide(self.state, event, now)
        return effects

    def requested(self, event: Event) -> list[VersionId]:
        """Feed an event; the versions whose plans are requested."""
        return [one.version for one in self.receive(event) if isinstance(one, MakePlan)]

    def starts(self, event: Event) -> list[StartLane]:
        """Feed an event; the lanes that are started."""
        return [one for one in self.receive(event) if isinstance(one, StartLane)]

    def rehearsed(self) -> list[FragmentId]:
        """The fragments that are rehearsed."""
        return [deployed.id for deployed, _ in self.state.shared.rehearsed.fragments]

    def reported(self) -> tuple[LaneState, str]:
        """The next report of its lane."""
        self.at_ms += 2_000
        self.receive(read(*self.state.shared.assigned.values()))
        reported = self.state.lanes[LANE].reported
        assert reported is not None
        return reported.status.state, reported.status.last_error


def test_a_start_waits_for_its_plan() -> None:
    """The plan is requested once, however often the catalog is read meanwhile."""
    node = Node()
    assert node.requested(read(deployed())) == [ONE]
    assert node.requested(read(deployed())) == []
    (start,) = node.starts(PlanMade(ONE, PLAN))
    assert (start.lane, start.run, start.fragment) == (LANE, 1, PLAN.fragments[0])
    assert node.requested(read(deployed())) == []


def test_a_lane_no_longer_desired_does_not_wait_for_its_plan() -> None:
    """No query has to end; the plan, when it arrives, starts nothing."""
    node = Node()
    node.receive(read(deployed()))
    node.receive(read(deployed(running=False)))
    assert isinstance(node.state.lanes[LANE].phase, Stopped)
    assert node.starts(PlanMade(ONE, PLAN)) == []


def test_a_lane_of_another_version_waits_for_the_plan_of_that_version() -> None:
    """Of the version that is deployed now."""
    node = Node()
    node.receive(read(deployed()))
    assert node.requested(read(deployed(version=2))) == [TWO]
    assert node.starts(PlanMade(ONE, PLAN)) == []
    (start,) = node.starts(PlanMade(TWO, PLAN))
    assert (start.run, start.deployed.record.version) == (2, 2)


def test_a_version_that_cannot_be_planned_fails_permanently() -> None:
    """Only its own fragments; another version starts."""
    node = Node()
    node.receive(read(deployed()))
    error = RefusedError("this version of Medusa cannot plan version 1 of the network")
    node.receive(PlanFailed(ONE, error))
    assert node.reported() == (LaneState.FAILED, error.message)
    assert node.requested(read(deployed())) == []
    assert node.requested(read(deployed(version=2))) == [TWO]


def test_a_version_is_requested_again_from_an_unreachable_catalog() -> None:
    """After a backoff, as for every external failure."""
    node = Node()
    node.receive(read(deployed()))
    node.receive(PlanFailed(ONE, UnavailableError("ZooKeeper does not answer")))
    assert node.state.lanes[LANE].tries.waits == 1
    node.at_ms = 60_000
    assert ONE in node.requested(read(deployed()))
    assert len(node.starts(PlanMade(ONE, PLAN))) == 1


def test_a_plan_that_differs_from_the_deployed_one_does_not_start() -> None:
    """Another digest or no such fragment; also when the plan arrived before."""
    digest = fragment_digest(PLAN.fragments[1])
    node = Node()
    node.receive(read(deployed(digest=digest)))
    assert node.starts(PlanMade(ONE, PLAN)) == []
    state, words = node.reported()
    assert state is LaneState.FAILED
    assert "differs from what was deployed" in words
    node.receive(read(deployed(digest=f"{digest}0")))
    assert "differs from what was deployed" in node.reported()[1]
    node = Node()
    node.receive(read(deployed()))
    node.receive(PlanMade(ONE, replace(PLAN, fragments=())))
    assert "has no such fragment" in node.reported()[1]


def test_unused_plans_are_removed() -> None:
    """A long-running node keeps one for each version that runs."""
    node = Node()
    for version in range(1, 50):
        node.receive(read(deployed(version=version)))
        node.receive(PlanMade(VersionId(NETWORK, LIFE, NetworkVersion(version)), PLAN))
    assert len(node.state.shared.plans.made) <= 2
    node.receive(read())
    assert node.state.shared.plans.made == {}


def test_the_newest_version_of_a_network_is_planned_too() -> None:
    """It defines the retention of topics, also for fragments that it has not changed."""
    fragment = deployed()
    newer = replace(fragment, network=replace(fragment.network, version=NetworkVersion(2)))
    assert Node().requested(read(newer)) == [ONE, TWO]


def test_a_node_without_lanes_rehearses_fragments_of_others() -> None:
    """And stops when those stop. A paused fragment has no running lane."""
    node = Node()
    elsewhere = replace(deployed(), owner=OwnerRecord(THERE, OWNER, Epoch(1), Millis(0), Millis(0)))
    paused = deployed(
        FragmentId(NetworkId(ParticipantId("local"), NetworkName("other")), SPEED.fragment),
        running=False,
    )
    snapshot = CatalogSnapshot((node_record(HERE), node_record(THERE)), (elsewhere, paused))
    assert ONE in node.requested(CatalogRead(snapshot))
    node.receive(PlanMade(ONE, PLAN))
    assert node.rehearsed() == [SPEED]
    node.receive(CatalogRead(CatalogSnapshot((node_record(HERE), node_record(THERE)), (paused,))))
    assert node.rehearsed() == []


def test_a_rehearsal_that_cannot_be_planned_is_not_planned_again() -> None:
    """Its version is immutable; an unreachable catalog is requested again."""
    node = Node()
    elsewhere = replace(deployed(), owner=OwnerRecord(THERE, OWNER, Epoch(1), Millis(0), Millis(0)))
    snapshot = CatalogSnapshot((node_record(HERE), node_record(THERE)), (elsewhere,))
    node.receive(CatalogRead(snapshot))
    node.receive(PlanFailed(ONE, UnavailableError("ZooKeeper does not answer")))
    assert node.requested(CatalogRead(snapshot)) == [ONE]
    node.receive(PlanFailed(ONE, RefusedError("it cannot be planned")))
    assert node.requested(CatalogRead(snapshot)) == []
    assert node.rehearsed() == []

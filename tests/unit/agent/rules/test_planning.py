"""Which versions an agent has planned, and what it does with the plans."""

from dataclasses import dataclass, field, replace

from pipeline.agent.decide import decide
from pipeline.agent.effects import Effect, MakePlan, StartLane
from pipeline.agent.events import CatalogRead, Event, PlanFailed, PlanMade
from pipeline.agent.now import Now
from pipeline.agent.state import NodeState, Shared, Stopped
from pipeline.catalog.records import LaneState, OwnerRecord
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
from tests.unit.agent.support import LANE, LIFE, NETWORK, PLAN, SPEED, read, wish
from tests.unit.planner.networks import OWNER

ONE = VersionId(NETWORK, LIFE, NetworkVersion(1))
TWO = VersionId(NETWORK, LIFE, NetworkVersion(2))
THERE = NodeId("node2")


@dataclass
class Node:
    """An agent whose plans are made when a test says so."""

    state: NodeState = field(
        default_factory=lambda: NodeState(Shared(NodeId("node1"), OWNER, Millis(0)))
    )
    at_ms: int = 0

    def hear(self, event: Event) -> tuple[Effect, ...]:
        """Tell it something; what it does."""
        now = Now(Millis(self.at_ms), SteadyMillis(self.at_ms))
        self.state, effects = decide(self.state, event, now)
        return effects

    def asked(self, event: Event) -> list[VersionId]:
        """Tell it something; the versions that it wants to be planned."""
        return [one.version for one in self.hear(event) if isinstance(one, MakePlan)]

    def starts(self, event: Event) -> list[StartLane]:
        """Tell it something; the lanes that it starts."""
        return [one for one in self.hear(event) if isinstance(one, StartLane)]

    def rehearsed(self) -> list[FragmentId]:
        """What it rehearses."""
        return [deployed.id for deployed, _ in self.state.shared.rehearsed]

    def shown(self) -> tuple[LaneState, str]:
        """What it reports of its lane when that is due again."""
        self.at_ms += 2_000
        self.hear(read(*self.state.shared.assigned.values()))
        reported = self.state.lanes[LANE].reported
        assert reported is not None
        return reported.status.state, reported.status.last_error


def test_a_start_waits_for_its_plan() -> None:
    """Which is asked for once, however often the catalog is read meanwhile."""
    node = Node()
    assert node.asked(read(wish())) == [ONE]
    assert node.asked(read(wish())) == []
    (start,) = node.starts(PlanMade(ONE, PLAN))
    assert (start.lane, start.run, start.fragment) == (LANE, 1, PLAN.fragments[0])
    assert node.asked(read(wish())) == []


def test_a_lane_that_is_not_wanted_any_more_does_not_wait_for_its_plan() -> None:
    """Nothing runs that would have to end; its plan, when it comes, starts nothing."""
    node = Node()
    node.hear(read(wish()))
    node.hear(read(wish(running=False)))
    assert isinstance(node.state.lanes[LANE].phase, Stopped)
    assert node.starts(PlanMade(ONE, PLAN)) == []


def test_a_lane_that_is_wanted_otherwise_waits_for_the_other_plan() -> None:
    """Of the version that is deployed now."""
    node = Node()
    node.hear(read(wish()))
    assert node.asked(read(wish(version=2))) == [TWO]
    assert node.starts(PlanMade(ONE, PLAN)) == []
    (start,) = node.starts(PlanMade(TWO, PLAN))
    assert (start.run, start.deployed.record.version) == (2, 2)


def test_a_version_that_cannot_be_planned_fails_in_words_and_is_not_tried_again() -> None:
    """Only its own fragments; another version starts."""
    node = Node()
    node.hear(read(wish()))
    error = RefusedError("this version of Medusa cannot plan version 1 of the network")
    node.hear(PlanFailed(ONE, error))
    assert node.shown() == (LaneState.FAILED, error.message)
    assert node.asked(read(wish())) == []
    assert node.asked(read(wish(version=2))) == [TWO]


def test_a_catalog_that_does_not_answer_is_asked_again_for_a_version() -> None:
    """After a wait, as for every failure from outside."""
    node = Node()
    node.hear(read(wish()))
    node.hear(PlanFailed(ONE, UnavailableError("ZooKeeper does not answer")))
    assert node.state.lanes[LANE].tries.waits == 1
    node.at_ms = 60_000
    assert ONE in node.asked(read(wish()))
    assert len(node.starts(PlanMade(ONE, PLAN))) == 1


def test_a_plan_that_is_not_the_deployed_one_does_not_start() -> None:
    """Its digest differs, or it has no such fragment; also when the plan was there before."""
    digest = fragment_digest(PLAN.fragments[1])
    node = Node()
    node.hear(read(wish(digest=digest)))
    assert node.starts(PlanMade(ONE, PLAN)) == []
    state, words = node.shown()
    assert state is LaneState.FAILED
    assert "differs from what was deployed" in words
    node.hear(read(wish(digest=f"{digest}0")))
    assert "differs from what was deployed" in node.shown()[1]
    node = Node()
    node.hear(read(wish()))
    node.hear(PlanMade(ONE, replace(PLAN, fragments=())))
    assert "has no such fragment" in node.shown()[1]


def test_plans_that_nobody_needs_are_forgotten() -> None:
    """A node that lives long keeps one for each version that runs."""
    node = Node()
    for version in range(1, 50):
        node.hear(read(wish(version=version)))
        node.hear(PlanMade(VersionId(NETWORK, LIFE, NetworkVersion(version)), PLAN))
    assert len(node.state.shared.plans.made) <= 2
    node.hear(read())
    assert node.state.shared.plans.made == {}


def test_the_newest_version_of_a_network_is_planned_too() -> None:
    """It says how long topics are kept, also those of fragments that it has not changed."""
    fragment = wish()
    newer = replace(fragment, network=replace(fragment.network, version=NetworkVersion(2)))
    assert Node().asked(read(newer)) == [ONE, TWO]


def test_a_node_that_runs_no_lane_rehearses_what_others_run() -> None:
    """And forgets it when that ends. A paused fragment is no lane that runs."""
    node = Node()
    elsewhere = replace(wish(), owner=OwnerRecord(THERE, OWNER, Epoch(1), Millis(0), Millis(0)))
    paused = wish(
        FragmentId(NetworkId(ParticipantId("local"), NetworkName("other")), SPEED.fragment),
        running=False,
    )
    snapshot = CatalogSnapshot(frozenset({THERE}), (elsewhere, paused))
    assert ONE in node.asked(CatalogRead(snapshot))
    node.hear(PlanMade(ONE, PLAN))
    assert node.rehearsed() == [SPEED]
    node.hear(CatalogRead(CatalogSnapshot(frozenset({THERE}), (paused,))))
    assert node.rehearsed() == []


def test_what_cannot_be_rehearsed_is_not_planned_again_and_again() -> None:
    """Its version stays what it is; a catalog that did not answer is asked again."""
    node = Node()
    elsewhere = replace(wish(), owner=OwnerRecord(THERE, OWNER, Epoch(1), Millis(0), Millis(0)))
    snapshot = CatalogSnapshot(frozenset({THERE}), (elsewhere,))
    node.hear(CatalogRead(snapshot))
    node.hear(PlanFailed(ONE, UnavailableError("ZooKeeper does not answer")))
    assert node.asked(CatalogRead(snapshot)) == [ONE]
    node.hear(PlanFailed(ONE, RefusedError("it cannot be planned")))
    assert node.asked(CatalogRead(snapshot)) == []
    assert node.rehearsed() == []

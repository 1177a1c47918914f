"""What a node rehearses of what it stands by for."""

from dataclasses import replace

from pipeline.agent.effects import Rehearse
from pipeline.agent.events import CatalogRead, Tick
from pipeline.agent.rules.rehearsal import rehearse
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState, Shared
from pipeline.catalog.records import OwnerRecord
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import Epoch, FragmentId, FragmentName, Millis, NodeId
from pipeline.planner.digest import fragment_digest
from pipeline.planner.planner import plan
from tests.unit.agent.support import (
    HERE,
    NETWORK,
    PLAN,
    SPEED,
    START_MS,
    Agent,
    deployed,
    node_record,
)
from tests.unit.planner.networks import OWNER, aggregated, external, filtered, network

THERE = NodeId("node2")
VOLUME = FragmentId(NETWORK, FragmentName("volume"))
_CARS = external("cars")
MIXED = plan(
    network(
        (_CARS,),
        (
            filtered("speed", _CARS, "`at` > 0"),
            aggregated("counts", _CARS, {"car": "`at`"}, {"n": ("max", "`at`")}),
        ),
    ),
    OWNER,
)
READ = CatalogRead(CatalogSnapshot((), ()))


def run_by(one: Deployed, node: NodeId, by: int = 1) -> Deployed:
    """A fragment with secondaries, run by a node."""
    owner = OwnerRecord(node, OWNER, Epoch(1), Millis(0), START_MS)
    return replace(one, record=replace(one.record, active_standbys=by), owner=owner)


def rehearsals(effects: Effects) -> list[tuple[list[str], bool]]:
    """What a node that has work rehearses, and whether it may now."""
    found = (one for one in effects if isinstance(one, Rehearse))
    return [([one.record.fragment for one, _ in each.standbys], each.is_free) for each in found]


def test_a_secondary_rehearses_what_it_stands_by_for_unless_a_lane_starts() -> None:
    """Its own lane, `volume`, starts first."""
    agent, nodes = Agent(), (node_record(HERE), node_record(THERE))
    other = run_by(deployed(SPEED), THERE)
    read = CatalogRead(CatalogSnapshot(nodes, (other, run_by(deployed(VOLUME), HERE, by=0))))
    begun = rehearsals(agent.receive_all(read))
    assert begun[-1] == (["speed"], False)
    assert rehearsals(agent.receive_all(read)) == []
    agent.state = replace(agent.state, lanes={})
    assert rehearsals(agent.receive_all(Tick())) == [(["speed"], True)]
    assert rehearsals(agent.receive_all(Tick())) == []
    alone = CatalogRead(CatalogSnapshot(nodes, (run_by(deployed(SPEED), THERE, by=0),)))
    assert rehearsals(agent.receive_all(alone))[-1] == ([], True)


def standing_by(*those: Deployed, is_begun: bool = True) -> NodeState:
    """A node that stands by for fragments of its plan."""
    shared = Shared(HERE, OWNER, START_MS)
    plans = shared.plans
    for one in those:
        plans = plans.with_plan(one.version, MIXED)
    pairs = tuple((one, is_begun) for one in those)
    return NodeState(replace(shared, plans=plans, standing_by=pairs))


def mixed(active: int, passive: int) -> tuple[Deployed, ...]:
    """Fragments with state and without, with so many secondaries of each kind."""
    those = (
        deployed(FragmentId(NETWORK, one.name), digest=fragment_digest(one))
        for one in MIXED.fragments
    )
    found = []
    for one in those:
        record = replace(one.record, active_standbys=active, passive_standbys=passive)
        found.append(replace(one, record=record))
    return tuple(found)


def test_a_fragment_with_copies_is_rehearsed() -> None:
    """Its query is not warm on a node that has only copied its checkpoint."""
    _, effects = rehearse(standing_by(*mixed(active=0, passive=1)), READ)
    assert rehearsals(effects) == [([one.name for one in MIXED.fragments], True)]


def test_a_fragment_with_state_has_a_follower_and_no_rehearsal() -> None:
    """One without is rehearsed, once its owner is up."""
    assert all(one.stateful_box is None for one in PLAN.fragments)
    every = mixed(active=1, passive=0)
    stateless = [one.name for one in MIXED.fragments if one.stateful_box is None]
    assert 0 < len(stateless) < len(every)
    state, effects = rehearse(standing_by(*every), READ)
    assert rehearsals(effects) == [(stateless, True)]
    assert rehearse(state, READ) == (state, ())
    _, effects = rehearse(standing_by(*every, is_begun=False), READ)
    assert rehearsals(effects) == [(stateless, False)]

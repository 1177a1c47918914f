"""Followers of the fragments that move to a node."""

from dataclasses import replace

from pipeline.agent.decide import decide
from pipeline.agent.effects import Effect, Follow, MakePlan, ReleaseFragment, StopLane
from pipeline.agent.events import CatalogRead, PlanMade, Tick
from pipeline.catalog.records import OwnerRecord, Transfer
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import Epoch, Millis, NetworkLife, NetworkVersion, NodeId
from pipeline.lanes.events import LaneStopped
from tests.unit.agent.support import (
    CARS,
    HERE,
    LANE,
    LIFE,
    PLAN,
    SPEED,
    START_MS,
    Agent,
    deployed,
    node_record,
)
from tests.unit.planner.networks import OWNER

THERE = NodeId("node2")


def owned(node: NodeId) -> Deployed:
    """The fragment, run by a node."""
    return replace(deployed(), owner=OwnerRecord(node, OWNER, Epoch(1), Millis(0), START_MS))


def transfer(source: NodeId, to: NodeId) -> Transfer:
    """Its move."""
    return Transfer(
        SPEED.network,
        LIFE,
        SPEED.fragment,
        NetworkVersion(1),
        source,
        Epoch(1),
        to,
        START_MS,
        START_MS,
        Millis(START_MS + 1),
        is_ready=False,
        problem="",
    )


def read(one: Deployed, *transfers: Transfer) -> CatalogRead:
    """A read of the catalog with two nodes."""
    nodes = node_record(HERE), node_record(THERE)
    return CatalogRead(CatalogSnapshot(nodes, (one,), transfers=transfers))


def follows(effects: tuple[Effect, ...]) -> list[list[Transfer | None]]:
    """The transfers of each request to follow."""
    found = (one for one in effects if isinstance(one, Follow))
    return [[each.transfer for each in one.fragments] for one in found]


def test_a_fragment_that_moves_here_is_followed_once_it_is_planned() -> None:
    """Once, and until the move is over."""
    agent, move = Agent(), transfer(THERE, HERE)
    assert follows(agent.receive_all(read(owned(THERE), move))) == [[move]]
    assert follows(agent.receive_all(read(owned(THERE), replace(move, is_ready=True)))) == []
    assert follows(agent.receive_all(Tick())) == []
    assert follows(agent.receive_all(read(owned(THERE)))) == [[]]


def test_a_move_to_another_node_is_not_followed() -> None:
    """Nor one that is over."""
    agent = Agent()
    assert follows(agent.receive_all(read(owned(HERE), transfer(HERE, THERE)))) == []
    late = replace(transfer(THERE, HERE), epoch=Epoch(2))
    assert follows(agent.receive_all(read(owned(THERE), late))) == []


def test_an_owner_stops_and_releases_once_the_target_is_ready() -> None:
    """Not before; and not if the move is cancelled before."""
    agent, move = Agent(), transfer(HERE, THERE)
    agent.receive(read(owned(HERE)))
    agent.started(CARS)
    assert agent.receive(read(owned(HERE), move)) == ()
    assert agent.receive(read(owned(HERE))) == ()
    effects = agent.receive_all(read(owned(HERE), replace(move, is_ready=True)))
    assert StopLane(LANE) in effects
    run = agent.lane().run
    ended = agent.receive_all(LaneStopped(LANE, run, Epoch(1), None, retry=True, fenced=False))
    assert [one.fragment for one in ended if isinstance(one, ReleaseFragment)] == [SPEED]


def followed(node: NodeId) -> Deployed:
    """The fragment with a secondary, run by a node."""
    one = owned(node)
    return replace(one, record=replace(one.record, active_standbys=1))


def requests(effects: tuple[Effect, ...]) -> list[list[tuple[bool, bool]]]:
    """Of each request to follow, whether each fragment has this node as a secondary, and begins."""
    found = (one for one in effects if isinstance(one, Follow))
    return [[(each.is_standby, each.is_begun) for each in one.fragments] for one in found]


def test_a_secondary_follows_as_long_as_it_is_one() -> None:
    """Also while it is moved here, which ends or not."""
    agent, move = Agent(), transfer(THERE, HERE)
    assert requests(agent.receive_all(read(followed(THERE)))) == [[(True, True)]]
    assert requests(agent.receive_all(read(followed(THERE)))) == []
    moves = agent.receive_all(read(followed(THERE), move))
    assert requests(moves) == [[(True, True)]]
    assert follows(moves) == [[move]]
    ready = agent.receive_all(read(followed(THERE), replace(move, is_ready=True)))
    assert requests(ready) == []
    assert follows(agent.receive_all(read(followed(THERE)))) == [[None]]


def test_what_the_catalog_does_not_have_any_more_is_forgotten() -> None:
    """Once, when it is gone."""
    agent = Agent()
    nodes = node_record(HERE), node_record(THERE)
    agent.receive(read(followed(THERE)))
    effects = agent.receive_all(CatalogRead(CatalogSnapshot(nodes, ())))
    assert [one for one in effects if isinstance(one, Follow)] == [Follow((), frozenset({SPEED}))]
    effects = agent.receive_all(CatalogRead(CatalogSnapshot(nodes, ())))
    assert [one for one in effects if isinstance(one, Follow)] == []


def test_a_secondary_that_takes_over_keeps_its_follower() -> None:
    """Until it is the owner, and its lane runs: the answer of the claim may have been lost."""
    agent = Agent()
    agent.receive(read(followed(THERE)))
    alone = CatalogSnapshot((node_record(HERE),), (followed(THERE),))
    assert requests(agent.receive_all(CatalogRead(alone))) == [[(True, False)]]
    assert requests(agent.receive_all(read(followed(HERE)))) == []
    agent.started(CARS)
    assert requests(agent.receive_all(read(followed(HERE)))) == [[]]
    again = followed(THERE)
    assert again.owner is not None
    later = replace(again, owner=replace(again.owner, epoch=Epoch(3)))
    assert requests(agent.receive_all(read(later))) == [[(True, True)]]


def test_an_earlier_version_is_followed_until_the_new_one_is_planned() -> None:
    """So that the follower of the new one can begin from its state. A new life has none."""
    agent, was = Agent(), followed(THERE)
    agent.receive_all(read(was))
    newer = replace(was, record=replace(was.record, version=NetworkVersion(2)))
    agent.state, effects = decide(agent.state, read(newer), agent.now)
    (before,) = agent.state.shared.followed
    assert before.deployed == was
    assert (before.is_standby, before.is_begun) == (True, False)
    assert requests(effects) == [[(True, False)]]
    (plan,) = [one for one in effects if isinstance(one, MakePlan)]
    planned = agent.receive_all(PlanMade(plan.version, PLAN))
    assert requests(planned) == [[(True, True)]]
    assert agent.state.shared.followed[0].deployed == newer
    network = replace(newer.network, life=NetworkLife("another"))
    again = replace(newer, network=network)
    agent.state, effects = decide(agent.state, read(again), agent.now)
    assert requests(effects) == [[]]

"""Which checkpoints a node copies, and which fragments it only copies."""

from dataclasses import replace

from pipeline.agent.effects import CopyCheckpoints, Effect, Follow, Following
from pipeline.agent.events import Tick
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import NodeId
from tests.unit.agent.rules.test_following import THERE, owned, read, transfer
from tests.unit.agent.support import HERE, PLAN, Agent


def passive(node: NodeId, every_ms: int = 10_000, number: int = 1) -> Deployed:
    """The fragment with passive standbys, run by a node."""
    one = owned(node)
    record = replace(one.record, passive_standbys=number, checkpoint_every_ms=every_ms)
    return replace(one, record=record)


def copied(effects: tuple[Effect, ...]) -> list[dict[str, int]]:
    """The intervals of each request to copy."""
    found = (one.every_ms for one in effects if isinstance(one, CopyCheckpoints))
    return [{one.fragment: every_ms for one, every_ms in each.items()} for each in found]


def followed(effects: tuple[Effect, ...]) -> list[list[tuple[bool, int]]]:
    """Of each request to follow: whether batches are repeated, and how often a copy is made."""
    found = (one.fragments for one in effects if isinstance(one, Follow))
    return [[(one.is_active, one.checkpoint_every_ms) for one in each] for each in found]


def test_a_node_copies_the_checkpoints_of_what_it_runs() -> None:
    """From the first read of the catalog, until it is not wanted any more."""
    agent = Agent()
    assert copied(agent.receive_all(read(passive(HERE)))) == [{"speed": 10_000}]
    assert copied(agent.receive_all(read(passive(HERE)))) == []
    assert copied(agent.receive_all(Tick())) == []
    assert copied(agent.receive_all(read(passive(HERE, 5_000)))) == [{"speed": 5_000}]
    assert copied(agent.receive_all(read(owned(HERE)))) == [{}]


def test_a_node_copies_nothing_of_what_another_one_runs() -> None:
    """It has the copies as its secondary; another interval is another standby."""
    agent = Agent()
    effects = agent.receive_all(read(passive(THERE)))
    assert copied(effects) == []
    assert followed(effects) == [[(False, 10_000)]]
    assert followed(agent.receive_all(read(passive(THERE)))) == []
    assert followed(agent.receive_all(read(passive(THERE, 5_000)))) == [[(False, 5_000)]]


def test_a_fragment_that_moves_here_is_followed_although_it_is_copied() -> None:
    """A move needs every batch."""
    agent, move = Agent(), transfer(THERE, HERE)
    agent.receive_all(read(passive(THERE)))
    assert followed(agent.receive_all(read(passive(THERE), move))) == [[(True, 0)]]
    assert followed(agent.receive_all(read(passive(THERE)))) == [[(False, 10_000)]]


def test_what_copies_is_not_what_follows() -> None:
    """One ends, and the other begins, when the purpose changes."""
    copies = Following(passive(THERE), PLAN.fragments[0], None, is_standby=True)
    moved = replace(copies, transfer=transfer(THERE, HERE))
    seldom = replace(copies, deployed=passive(THERE, 20_000))
    more = replace(copies, deployed=passive(THERE, number=2))
    assert copies.goes_on(copies)
    assert copies.goes_on(more)
    assert not copies.goes_on(moved)
    assert not moved.goes_on(copies)
    assert not copies.goes_on(seldom)

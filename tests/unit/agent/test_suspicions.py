"""Nodes that are suspected, for a while, and since when nodes are lost."""

from dataclasses import replace

from pipeline.agent.suspicions import BY_SESSION, LOST_MOST_MS, STALE_S, Noticed, Suspicions
from pipeline.catalog.records import OwnerRecord
from pipeline.heartbeats.detector import Suspect, Suspicion, Why
from pipeline.ids import Epoch, Millis, SteadyMillis
from tests.unit.agent.performers import NODE
from tests.unit.deploy.twins import TwinClock

SUSPECT = Suspect(NODE.node, NODE.started_at_ms)
SILENT = Suspicion(Why.SILENT, 1_100, 1_000, 0, SteadyMillis(500))
OWNER = OwnerRecord(NODE.node, NODE.participant, Epoch(1), Millis(0), NODE.started_at_ms)


def test_a_suspicion_is_of_one_life_and_counts_for_a_while() -> None:
    """If heartbeats are not read any more, nothing is known."""
    clock = TwinClock()
    suspicions = Suspicions(clock)
    assert suspicions.current == frozenset()
    suspicions.note({SUSPECT: SILENT})
    assert suspicions.has(NODE)
    assert not suspicions.has(replace(NODE, started_at_ms=Millis(NODE.started_at_ms + 1)))
    clock.sleep(STALE_S)
    assert suspicions.has(NODE)
    clock.sleep(0.1)
    assert not suspicions.has(NODE)
    assert suspicions.current == frozenset()
    suspicions.note({SUSPECT: SILENT})
    suspicions.note({})
    assert not suspicions.has(NODE)


def test_a_loss_was_noticed_when_its_suspicion_began() -> None:
    """Not when it was repeated; a later one, after nothing was known, begins anew."""
    clock = TwinClock()
    clock.sleep(2.0)
    suspicions = Suspicions(clock)
    suspicions.note({SUSPECT: SILENT})
    clock.sleep(1.0)
    suspicions.note({SUSPECT: replace(SILENT, for_ms=2_100)})
    assert suspicions.noticed(OWNER) == Noticed("silent", SteadyMillis(2_000), SteadyMillis(500))
    assert suspicions.noticed(replace(OWNER, life=Millis(OWNER.life - 1))) is None
    clock.sleep(STALE_S + 0.1)
    assert suspicions.noticed(OWNER) is None
    suspicions.note({SUSPECT: SILENT})
    assert suspicions.noticed(OWNER) == Noticed("silent", SteadyMillis(6_100), SteadyMillis(500))


def test_a_loss_without_a_suspicion_was_noticed_by_the_catalog() -> None:
    """Until the node is up again, or long ago."""
    clock = TwinClock()
    suspicions = Suspicions(clock)
    suspicions.note_up([])
    assert suspicions.noticed(OWNER) is None
    suspicions.note_up([NODE.node])
    clock.sleep(5.0)
    suspicions.note_up([])
    clock.sleep(1.0)
    suspicions.note_up([])
    assert suspicions.noticed(OWNER) == Noticed(BY_SESSION, SteadyMillis(5_000))
    suspicions.note({SUSPECT: SILENT})
    assert suspicions.noticed(OWNER) == Noticed("silent", SteadyMillis(6_000), SteadyMillis(500))
    suspicions.note({})
    suspicions.note_up([NODE.node])
    assert suspicions.noticed(OWNER) is None
    suspicions.note_up([])
    clock.sleep(LOST_MOST_MS / 1_000)
    suspicions.note_up([])
    assert suspicions.noticed(OWNER) is None

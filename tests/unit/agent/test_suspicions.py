"""Nodes that are suspected, for a while."""

from dataclasses import replace

from pipeline.agent.suspicions import STALE_S, Suspicions
from pipeline.heartbeats.detector import Suspect
from pipeline.ids import Millis
from tests.unit.agent.performers import NODE
from tests.unit.deploy.twins import TwinClock


def test_a_suspicion_is_of_one_life_and_counts_for_a_while() -> None:
    """If heartbeats are not read any more, nothing is known."""
    clock = TwinClock()
    suspicions = Suspicions(clock)
    assert suspicions.current == frozenset()
    suspicions.note({Suspect(NODE.node, NODE.started_at_ms)})
    assert suspicions.has(NODE)
    assert not suspicions.has(replace(NODE, started_at_ms=Millis(NODE.started_at_ms + 1)))
    clock.sleep(STALE_S)
    assert suspicions.has(NODE)
    clock.sleep(0.1)
    assert not suspicions.has(NODE)
    assert suspicions.current == frozenset()
    suspicions.note({Suspect(NODE.node, NODE.started_at_ms)})
    suspicions.note(())
    assert not suspicions.has(NODE)

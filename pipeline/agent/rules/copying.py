"""Copies of the checkpoints of the fragments that this node runs: passive standby."""

from dataclasses import replace

from pipeline.agent.effects import CopyCheckpoints
from pipeline.agent.events import CatalogRead, Event
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState


def copy(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Copy the checkpoints of these fragments, if they have changed, or how often."""
    if not isinstance(event, CatalogRead):
        return state, ()
    shared = state.shared
    found = {
        one.id: one.record.checkpoint_every_ms
        for one in shared.assigned.values()
        if one.record.passive_standbys
    }
    if found == shared.copied:
        return state, ()
    return replace(state, shared=replace(shared, copied=found)), (CopyCheckpoints(found),)

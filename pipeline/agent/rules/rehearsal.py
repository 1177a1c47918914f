"""Rehearsals of an idle node: which fragments of other nodes it runs."""

from dataclasses import replace

from pipeline.agent.effects import Rehearse
from pipeline.agent.events import CatalogRead, Event, PlanMade
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState
from pipeline.errors import MedusaError


def rehearse(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Rehearse the fragments that other nodes run, if these have changed."""
    if not isinstance(event, CatalogRead | PlanMade):
        return state, ()
    shared = state.shared
    found = [(one, shared.plans.fragment(one)) for one in shared.elsewhere]
    fragments = tuple(
        (one, fragment)
        for one, fragment in found
        if fragment is not None and not isinstance(fragment, MedusaError)
    )
    known = [(one.id, one.version) for one, _ in shared.rehearsed]
    if [(one.id, one.version) for one, _ in fragments] == known:
        return state, ()
    return replace(state, shared=replace(shared, rehearsed=fragments)), (Rehearse(fragments),)

"""Followers of the fragments that move to this node."""

from dataclasses import replace

from pipeline.agent.effects import Follow, Following
from pipeline.agent.events import CatalogRead, Event, PlanMade
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState
from pipeline.errors import MedusaError


def follow(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Follow the fragments that move here, once they are planned, if these have changed."""
    if not isinstance(event, CatalogRead | PlanMade):
        return state, ()
    shared = state.shared
    failed = shared.plans.failed
    planned = [
        (one, failed.get(one.version) or shared.plans.fragment(one), transfer)
        for one, transfer in shared.moving_here
    ]
    found = tuple(
        Following(one, fragment, transfer)
        for one, fragment, transfer in planned
        if fragment is not None
    )
    moves = tuple((one.transfer.as_asked, isinstance(one.fragment, MedusaError)) for one in found)
    if moves == shared.followed:
        return state, ()
    return replace(state, shared=replace(shared, followed=moves)), (Follow(found),)

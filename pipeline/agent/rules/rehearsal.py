"""Rehearsals: which fragments of other nodes this one runs, to take them over faster.

An idle node rehearses all that it may run; one that has work only those that it is a secondary of
and has no follower for, and none while one of its lanes starts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipeline.agent.effects import Rehearse
from pipeline.agent.events import CatalogRead, Event, PlanMade
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState, Shared, Starting
from pipeline.catalog.snapshot import Deployed
from pipeline.errors import MedusaError
from pipeline.planner.plan import Fragment


def rehearse(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Rehearse the fragments that other nodes run, if these have changed, or whether it may."""
    shared, before = state.shared, state.shared.rehearsed
    found = before
    if isinstance(event, CatalogRead | PlanMade):
        standbys = (one for one, _ in shared.standing_by)
        found = Rehearse(
            tuple(_planned(shared, shared.elsewhere)),
            tuple(
                (one, fragment)
                for one, fragment in _planned(shared, standbys)
                if fragment.stateful_box is None or not one.record.active_standbys
            ),
        )
    found = replace(found, is_free=_is_free(state))
    if _seen(found) == _seen(before):
        return state, ()
    return replace(state, shared=replace(shared, rehearsed=found)), (found,)


def _planned(shared: Shared, those: Iterable[Deployed]) -> Iterator[tuple[Deployed, Fragment]]:
    """Those with a plan."""
    for one in those:
        fragment = shared.plans.fragment(one)
        if fragment is not None and not isinstance(fragment, MedusaError):
            yield one, fragment


def _is_free(state: NodeState) -> bool:
    """Whether no lane starts, and no fragment that this node stands by for has lost its owner."""
    starts = any(isinstance(lane.phase, Starting) for lane in state.lanes.values())
    return not starts and all(is_begun for _, is_begun in state.shared.standing_by)


def _seen(one: Rehearse) -> tuple[object, ...]:
    """What a rehearsal depends on."""
    every = (one.fragments, one.standbys)
    return one.is_free, [[(each.id, each.version) for each, _ in some] for some in every]

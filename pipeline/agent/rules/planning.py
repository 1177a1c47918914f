"""Requests for plans of network versions."""

from dataclasses import replace

from pipeline.agent.effects import MakePlan
from pipeline.agent.events import CatalogRead, Event
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import NodeState, Shared, Starting, Stopped
from pipeline.catalog.snapshot import Deployed, VersionId
from pipeline.errors import BrokenInvariantError, InputError


def request_plans(state: NodeState, event: Event) -> tuple[NodeState, Effects]:
    """Request the plans that are needed and neither made nor pending; drop the others.

    A start that waits for its plan requests it at once. Other useful plans are requested when
    the catalog is read; a version that this program cannot plan is not tried again.
    """
    shared = state.shared
    plans = shared.plans
    needed: set[VersionId] = set()
    if isinstance(event, CatalogRead):
        needed = {
            version
            for version in _of_use(state)
            if not isinstance(plans.failed.get(version), InputError | BrokenInvariantError)
        }
        plans = plans.without(plans.versions - _versions(shared))
    needed |= _waited_for(state)
    new = needed - plans.made.keys() - plans.pending
    if not new and plans is shared.plans:
        return state, ()
    state = replace(state, shared=replace(shared, plans=plans.with_pending(new)))
    return state, tuple(map(MakePlan, sorted(new)))


def _waited_for(state: NodeState) -> set[VersionId]:
    starting = (lane.phase for lane in state.lanes.values() if isinstance(lane.phase, Starting))
    return {phase.deployed.version for phase in starting if phase.fragment is None}


def _of_use(state: NodeState) -> set[VersionId]:
    """The newest versions, for their retention; those of followed fragments.

    Also those to rehearse on a node without lanes.
    """
    shared = state.shared
    found = {one.newest_version for one in shared.assigned.values()}
    found |= {one.version for one in _followed(shared)}
    if all(isinstance(lane.phase, Stopped) for lane in state.lanes.values()):
        found |= {one.version for one in shared.elsewhere}
    return found


def _followed(shared: Shared) -> tuple[Deployed, ...]:
    """The fragments that move here, or that the node is a secondary of."""
    pairs = (*shared.moving_here, *shared.standing_by)
    return tuple(one for one, _ in pairs)


def _versions(shared: Shared) -> frozenset[VersionId]:
    every = (*shared.assigned.values(), *shared.elsewhere, *_followed(shared))
    return frozenset(key for one in every for key in (one.version, one.newest_version))

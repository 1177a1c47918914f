"""(state, event, now) → (state, effects): every decision of a node's agent. Pure.

An event is first applied to the state that all lanes share. Then the lane rules are applied to each
lane, and the node rules to the node. While the catalog is in doubt nothing is started and no status
is reported; running lanes continue, since Kafka fences them if another node has taken over.
"""

from dataclasses import replace

from pipeline.agent.effects import Effect
from pipeline.agent.events import (
    CatalogLost,
    CatalogRead,
    EndsRead,
    Event,
    PlanFailed,
    PlanMade,
)
from pipeline.agent.logged import log_run
from pipeline.agent.now import Now
from pipeline.agent.rules.activity import send_activity
from pipeline.agent.rules.copying import copy
from pipeline.agent.rules.desired import assign
from pipeline.agent.rules.expiring import find_expiring
from pipeline.agent.rules.following import follow
from pipeline.agent.rules.lag import observe_ends
from pipeline.agent.rules.planning import request_plans
from pipeline.agent.rules.reconcile import reconcile
from pipeline.agent.rules.recovery import retry_soon
from pipeline.agent.rules.rehearsal import rehearse
from pipeline.agent.rules.release import release
from pipeline.agent.rules.report import report
from pipeline.agent.rules.retention import send_retention
from pipeline.agent.rules.rule import Effects, LaneRule, NodeRule
from pipeline.agent.rules.runs import follow_run
from pipeline.agent.rules.takeover import follow_takeover
from pipeline.agent.rules.tentative import follow_tentative
from pipeline.agent.rules.watching import watch
from pipeline.agent.state import Lane, NodeState, Shared, Stopped
from pipeline.errors import BrokenInvariantError
from pipeline.ids import stable_lane
from pipeline.lanes.events import LaneStarted

LANE_RULES: tuple[LaneRule, ...] = (
    assign,
    follow_run,
    follow_takeover,
    follow_tentative,
    observe_ends,
    retry_soon,
    reconcile,
    send_activity,
    send_retention,
    find_expiring,
    report,
)
NODE_RULES: tuple[NodeRule, ...] = (request_plans, watch, rehearse, follow, copy, release)
"""In this order; each rule reads the result of those before it."""


def decide(state: NodeState, event: Event, now: Now) -> tuple[NodeState, Effects]:
    """Decide what follows from an event.

    Args:
        state: the agent's state.
        event: what happened.
        now: the present.

    Returns:
        The new state, and the effects to perform, in order.

    Raises:
        BrokenInvariantError: the event cannot happen in this state; `state` is unchanged.
    """
    if isinstance(event, LaneStarted) and event.lane not in state.lanes:
        place = f"fragment {event.lane.fragment}"
        raise BrokenInvariantError("a lane started that was not asked to", place=place)
    state = _with_new_lanes(replace(state, shared=_updated(state.shared, event)))
    effects: list[Effect] = []
    leaving = state.shared.leaving
    # First those that leave: others may take their places.
    for key in sorted(state.lanes, key=lambda one: (one.fragment not in leaving, one)):
        before = state.lanes[key]
        lane, requested = _apply_rules(before, _with_room(state), event, now)
        effects.extend(requested)
        effects.extend(log_run(before, lane, state.shared, event, now))
        if lane.assigned is None and isinstance(lane.phase, Stopped):
            state = _without(state, lane)
        elif lane is not before:
            state = replace(state, lanes={**state.lanes, lane.id: lane})
    for rule in NODE_RULES:
        state, requested = rule(state, event)
        effects.extend(requested)
    return state, tuple(effects)


def _apply_rules(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    effects: list[Effect] = []
    for rule in LANE_RULES:
        lane, requested = rule(lane, shared, event, now)
        effects.extend(requested)
    return lane, tuple(effects)


def _with_room(state: NodeState) -> Shared:
    """What all lanes share, with whether there is room for another one now."""
    shared, is_full = state.shared, state.is_full
    return shared if shared.is_full is is_full else replace(shared, is_full=is_full)


def _without(state: NodeState, lane: Lane) -> NodeState:
    """The state without a lane; a later lane with this id gets a larger run number."""
    lanes = {key: other for key, other in state.lanes.items() if key != lane.id}
    last_run = max(state.shared.last_run, lane.run)
    return replace(state, lanes=lanes, shared=replace(state.shared, last_run=last_run))


def _with_new_lanes(state: NodeState) -> NodeState:
    """The state with a lane for each fragment that is assigned to this node."""
    shared = state.shared
    keys = {stable_lane(fragment) for fragment in shared.assigned} - state.lanes.keys()
    if not keys:
        return state
    new = {key: Lane(key, run=shared.last_run) for key in keys}
    return replace(state, lanes={**state.lanes, **new})


# --- what all lanes share -----------------------------------------------------------------------


def _updated(shared: Shared, event: Event) -> Shared:
    shared = replace(shared, answered=False) if shared.answered else shared
    match event:
        case CatalogRead() | CatalogLost() | PlanMade() | PlanFailed():
            return _catalog_updated(shared, event)
        case EndsRead():
            return _ends_read(shared, event)
        case _:
            return shared


def _catalog_updated(
    shared: Shared, event: CatalogRead | CatalogLost | PlanMade | PlanFailed
) -> Shared:
    match event:
        case CatalogRead(snapshot):
            known = frozenset(one.id for one in snapshot.fragments)
            return replace(
                shared,
                known=known,
                gone=shared.known - known,
                assigned={o.id: o for o in snapshot.assigned_to(shared.node)},
                elsewhere=snapshot.run_elsewhere(shared.node),
                leaving=snapshot.leaving(shared.node),
                moving_here=snapshot.followed_by(shared.node),
                standing_by=snapshot.standing_by(shared.node),
                catalog_current=True,
                answered=not shared.catalog_current,
            )
        case CatalogLost():
            return replace(shared, catalog_current=False)
        case PlanMade(version, plan):
            return replace(shared, plans=shared.plans.with_plan(version, plan))
        case PlanFailed(version, error):
            return replace(shared, plans=shared.plans.with_failure(version, error))


def _ends_read(shared: Shared, event: EndsRead) -> Shared:
    before = shared.ends
    more = before is not None and bool(event.ends.by_topic.keys() - before.by_topic.keys())
    return replace(shared, ends=event.ends, answered=more)

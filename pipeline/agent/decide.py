"""(state, event, now) → (state, effects): every decision of a node's agent, without doing anything.

An event is first noted in what all lanes share. Then each lane goes through the rules of a lane,
and the node through its own. While the catalog is in doubt nothing is started and no status is
reported; lanes that run go on, and so does their event time, since Kafka fences them if somebody
else took over.
"""

from dataclasses import replace

from pipeline.agent.effects import Effect
from pipeline.agent.events import (
    ActivityRead,
    BoundaryRead,
    CatalogLost,
    CatalogRead,
    EndsRead,
    Event,
    PlanFailed,
    PlanMade,
)
from pipeline.agent.now import Now
from pipeline.agent.rules.activity import tell_activity
from pipeline.agent.rules.assignment import assign
from pipeline.agent.rules.event_time import observe_time
from pipeline.agent.rules.planning import ask_for_plans
from pipeline.agent.rules.promises import tell_promises
from pipeline.agent.rules.reconcile import reconcile
from pipeline.agent.rules.recovery import retry_soon
from pipeline.agent.rules.rehearsal import rehearse
from pipeline.agent.rules.report import report
from pipeline.agent.rules.retention import tell_retention
from pipeline.agent.rules.rule import Effects, LaneRule, NodeRule
from pipeline.agent.rules.runs import follow_run
from pipeline.agent.rules.steering import advance
from pipeline.agent.rules.watching import watch
from pipeline.agent.state import Lane, NodeState, Shared, Stopped
from pipeline.boundaries import lane_time
from pipeline.boundaries.derived import PendingBoundary, with_activity, with_boundary
from pipeline.errors import BrokenInvariantError
from pipeline.ids import stable_lane
from pipeline.lanes.events import LaneStarted

LANE_RULES: tuple[LaneRule, ...] = (
    assign,
    follow_run,
    observe_time,
    retry_soon,
    reconcile,
    advance,
    tell_activity,
    tell_promises,
    tell_retention,
    report,
)
NODE_RULES: tuple[NodeRule, ...] = (ask_for_plans, watch, rehearse)
"""In this order; each rule sees what those before it have made of the lane, or of the node."""


def decide(state: NodeState, event: Event, now: Now) -> tuple[NodeState, Effects]:
    """Decide what an event means.

    Args:
        state: what the agent knows.
        event: what it is told.
        now: the present.

    Returns:
        The new state, and what has to be done, in order.

    Raises:
        BrokenInvariantError: the event cannot happen in this state; `state` still holds.
    """
    if isinstance(event, LaneStarted) and event.lane not in state.lanes:
        place = f"fragment {event.lane.fragment}"
        raise BrokenInvariantError("a lane started that was not asked to", place=place)
    state = _with_new_lanes(replace(state, shared=_noted(state.shared, event, now)))
    effects: list[Effect] = []
    for key in sorted(state.lanes):
        before = state.lanes[key]
        lane, asked = _ruled(before, state.shared, event, now)
        effects.extend(asked)
        if not _is_kept(lane):
            state = _without(state, lane)
        elif lane is not before:
            state = state.with_lane(lane)
    for rule in NODE_RULES:
        state, asked = rule(state, event)
        effects.extend(asked)
    return state, tuple(effects)


def _ruled(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    effects: list[Effect] = []
    for rule in LANE_RULES:
        lane, asked = rule(lane, shared, event, now)
        effects.extend(asked)
    return lane, tuple(effects)


def _is_kept(lane: Lane) -> bool:
    return lane.assigned is not None or not isinstance(lane.phase, Stopped)


def _without(state: NodeState, lane: Lane) -> NodeState:
    """The state without a lane; one that comes back is not taken for it."""
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


def _noted(shared: Shared, event: Event, now: Now) -> Shared:
    shared = replace(shared, answered=False) if shared.answered else shared
    match event:
        case CatalogRead() | CatalogLost() | PlanMade() | PlanFailed():
            return _catalog_noted(shared, event)
        case BoundaryRead():
            return _boundary_read(shared, event)
        case ActivityRead():
            return _activity_read(shared, event, now)
        case EndsRead():
            return _ends_read(shared, event)
        case _:
            return shared


def _catalog_noted(
    shared: Shared, event: CatalogRead | CatalogLost | PlanMade | PlanFailed
) -> Shared:
    match event:
        case CatalogRead(snapshot):
            return replace(
                shared,
                assigned={o.id: o for o in snapshot.assigned_to(shared.node)},
                elsewhere=snapshot.run_elsewhere(shared.node),
                catalog_known=True,
                answered=not shared.catalog_known,
            )
        case CatalogLost():
            return replace(shared, catalog_known=False)
        case PlanMade(version, plan):
            return replace(shared, plans=shared.plans.has_made(version, plan))
        case PlanFailed(version, error):
            return replace(shared, plans=shared.plans.has_failed(version, error))


def _boundary_read(shared: Shared, event: BoundaryRead) -> Shared:
    known = shared.writers.get(event.writer)
    if known is None:  # of a topic that was deleted, or of one who writes none of our inputs
        return shared
    boundary = PendingBoundary(event.boundary_ms, event.positions)
    known = with_boundary(known, event.epoch, boundary)
    return replace(shared, writers={**shared.writers, event.writer: known})


def _activity_read(shared: Shared, event: ActivityRead, now: Now) -> Shared:
    known = shared.writers.get(event.writer)
    if known is None:
        return shared
    told = with_activity(known, event.epoch, idle=event.idle, at_ms=now.steady_ms)
    return replace(shared, writers={**shared.writers, event.writer: told})


def _ends_read(shared: Shared, event: EndsRead) -> Shared:
    before = shared.ends
    ends = lane_time.ends_of(before, event.read_at_ms, event.ends, event.written)
    more = before is not None and bool(ends.by_topic.keys() - before.by_topic.keys())
    return replace(shared, ends=ends, ends_before=before, answered=more)

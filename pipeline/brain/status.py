"""What is reported of a fragment: counts from its marker, lag from positions and ends."""

from dataclasses import dataclass, replace

from pipeline.boundaries.derived import covers
from pipeline.boundaries.held import HeldBack
from pipeline.boundaries.lane_time import (
    ENDS_FRESH_MS,
    Ends,
    HeldOpen,
    LaneTime,
    finished_in,
    held_open,
)
from pipeline.boundaries.profile import LaneInput
from pipeline.boundaries.promise import is_spent
from pipeline.brain.now import Now
from pipeline.brain.state import EndsSeen, Lane, NodeState
from pipeline.catalog.records import FragmentStatus, LaneState
from pipeline.errors import BrokenInvariantError
from pipeline.ids import SteadyMillis, TopicName
from pipeline.lanes.events import FragmentId
from pipeline.lanes.lifecycle import Phase
from pipeline.lanes.markers import Totals
from pipeline.planner.instants import instant

ENDS_LOG_MAX = 64
"""Answers kept per input. At two a second they reach back half a minute exactly, and further ever
more coarsely, which is how exactly anyone wants to know an old lag."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far a lane is behind one input.

    `age_ms` is how old its oldest unfinished record can be: the time since the topic last ended
    where the lane has read to by now. For a lane that was behind from its start, it is the time
    since its last batch before that: what it had not read then can have waited since.
    """

    records: int = 0
    age_ms: int = 0


def status(state: NodeState, fragment: FragmentId, now: Now) -> FragmentStatus:
    """What to report of a fragment.

    Raises:
        BrokenInvariantError: this node has no such fragment.
    """
    lane = state.lanes.get(fragment)
    if lane is None:
        place = f"fragment {fragment.network}.{fragment.fragment}"
        raise BrokenInvariantError("this node has no such lane to report", place=place)
    unreachable = _unreachable(lane.time, state.ends, now.steady_ms)
    shown = shown_state(lane, catalog_known=state.catalog_known, reachable=not unreachable)
    error = lane.last_error
    if shown is LaneState.WAITING and unreachable:
        error = f"cannot be reached: topic {', '.join(unreachable)}"
    if shown is LaneState.RUNNING and lane.time is not None:
        held = held_open(lane.time, state.ends, now.steady_ms)
        if held:
            shown, error = LaneState.WAITING, _open_transactions(held, now)
    by_topic = _lags(lane, now.steady_ms) if shown is LaneState.RUNNING else {}
    totals = Totals() if lane.marker is None else lane.marker.totals
    held_back = _held_back(lane) if shown is LaneState.RUNNING else None
    silent_ms = held_back.silent_since_ms if held_back else None
    rebuild = lane.rebuilding if shown is LaneState.REBUILDING else None
    return FragmentStatus(
        network=fragment.network,
        fragment=fragment.fragment,
        node=state.node,
        epoch=lane.epoch,
        state=shown,
        reported_at_ms=now.wall_ms,
        records_in=totals.records_in,
        records_out=totals.records_out,
        lag_records=sum(lag.records for lag in by_topic.values()) if by_topic else None,
        lag_ms=max((lag.age_ms for lag in by_topic.values()), default=None),
        boundary_ms=None if lane.marker is None else lane.marker.boundary_ms,
        dead_letters=totals.dead_letters,
        late_dropped=totals.late_dropped,
        skipped=totals.skipped,
        restarts=lane.restarts,
        batch_ms=lane.batch_ms,
        last_error=error,
        rebuild_since_ms=now.wall_at(rebuild.since_ms) if rebuild else None,
        rebuild_offsets=rebuild.offsets if rebuild else 0,
        rebuild_read=rebuild.read if rebuild else 0,
        inputs=tuple((topic, by_topic[topic].records) for topic in sorted(by_topic)),
        held_by=held_back.stream if held_back else "",
        held_ms=held_back.by_ms if held_back else None,
        held_since_ms=now.wall_at(held_back.since_ms) if held_back else None,
        held_silent_since_ms=None if silent_ms is None else now.wall_at(silent_ms),
        steps_ms=lane.time.steps_ms if lane.time and shown is LaneState.RUNNING else None,
    )


def _held_back(lane: Lane) -> HeldBack | None:
    """Inputs that are merely silent hold nothing back of a lane that keeps nothing to come out."""
    held = None if lane.time is None else lane.time.held
    if held is None or lane.time is None or held.by_ms != 0:
        return held
    spent = lane.marker is None or is_spent(lane.time.profile.shape, lane.marker)
    return None if spent else held


def _open_transactions(held: tuple[HeldOpen, ...], now: Now) -> str:
    places = (
        f"topic {one.topic}, partition {one.partition}, offset {one.offset}, "
        f"since {instant(now.wall_at(one.since_ms))}"
        for one in held
    )
    return f"open transaction: {'; '.join(places)}"


def shown_state(lane: Lane, *, catalog_known: bool, reachable: bool) -> LaneState:
    """The word that `status` shows for a lane."""
    match lane.phase:
        case Phase.STOPPED:
            return LaneState.STOPPED if lane.wanted is None else LaneState.PENDING
        case Phase.STARTING:
            return LaneState.REBUILDING if lane.rebuilding else LaneState.STARTING
        case Phase.RUNNING | Phase.STOPPING:
            return LaneState.RUNNING if reachable else LaneState.WAITING
        case Phase.BACKING_OFF | Phase.FENCED:
            waiting = lane.waits > 0 or not catalog_known
            return LaneState.WAITING if waiting else LaneState.RESTARTING
        case Phase.FAILED:
            return LaneState.FAILED


def ends_noted(lane: Lane, ends: Ends) -> Lane:
    """The lane with an answer about its topics' ends kept, for as long as it is not finished."""
    if lane.time is None:
        return lane
    logs = dict(lane.ends_log)
    for lane_input in lane.time.profile.inputs:
        answer = ends.by_topic.get(lane_input.topic)
        if answer is None:
            continue
        finished = finished_in(lane.time.positions, lane_input)
        log = (*logs.get(lane_input.stream, ()), EndsSeen(ends.read_at_ms, answer))
        newest_finished = max((i for i, e in enumerate(log) if covers(finished, e.ends)), default=0)
        log = log[newest_finished:]
        logs[lane_input.stream] = log if len(log) <= ENDS_LOG_MAX else (*log[:-1:2], log[-1])
    return replace(lane, ends_log=logs)


def _lags(lane: Lane, now_ms: SteadyMillis) -> dict[TopicName, Lag]:
    """The lag per topic; empty as long as the end of one of them was never told."""
    if lane.time is None or any(
        not lane.ends_log.get(lane_input.stream) for lane_input in lane.time.profile.inputs
    ):
        return {}
    found: dict[TopicName, Lag] = {}
    for lane_input in lane.time.profile.inputs:
        lag = _lag(lane, lane.time, lane_input, now_ms)
        other = found.get(lane_input.topic, Lag())
        found[lane_input.topic] = Lag(
            records=other.records + lag.records, age_ms=max(other.age_ms, lag.age_ms)
        )
    return found


def _lag(lane: Lane, time: LaneTime, lane_input: LaneInput, now_ms: SteadyMillis) -> Lag:
    log = lane.ends_log[lane_input.stream]
    finished = finished_in(time.positions, lane_input)
    if covers(finished, log[-1].ends):
        return Lag()
    records = sum(max(0, end - finished.get(p, 0)) for p, end in log[-1].ends.items())
    before = log[0].at_ms if lane.read_at_ms is None else min(log[0].at_ms, lane.read_at_ms)
    since = max((e.at_ms for e in log if covers(finished, e.ends)), default=before)
    return Lag(records, max(0, now_ms - since))


def _unreachable(
    time: LaneTime | None, ends: Ends | None, now_ms: SteadyMillis
) -> tuple[TopicName, ...]:
    """The input topics that did not answer lately; none while the lane has hardly started."""
    if time is None:
        return ()
    topics = tuple(sorted({lane_input.topic for lane_input in time.profile.inputs}))
    if ends is None or ends.read_at_ms < time.started_ms:
        return topics if now_ms - time.started_ms > ENDS_FRESH_MS else ()
    if not ends.fresh(now_ms):
        return topics
    return tuple(topic for topic in topics if topic not in ends.by_topic)

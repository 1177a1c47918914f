"""Status of a fragment, from the state of its lane."""

from dataclasses import replace
from typing import Final

from pipeline.agent.lag import lags_by_topic, stalled_since
from pipeline.agent.now import Now
from pipeline.agent.state import (
    BackingOff,
    Failed,
    Fenced,
    Lane,
    Running,
    Shared,
    Starting,
    Stopped,
    Stopping,
)
from pipeline.boundaries.ends import ENDS_FRESH_MS, Ends
from pipeline.boundaries.held import HELD_LEAST_MS, HeldBack
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.open_transactions import HeldOpen, held_open
from pipeline.boundaries.profile import DerivedInput
from pipeline.boundaries.promise import is_spent, last_result_ms
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.event_log.event import one_line
from pipeline.ids import NO_EPOCH, Epoch, Millis, SteadyMillis, StreamName, TopicName
from pipeline.lanes.tentative_state import missing_text
from pipeline.markers.commit_marker import Totals
from pipeline.planner.instants import instant

_FULL: Final = (
    "its state has reached state_limit: only what is behind in event time is read until it is"
    " below; if nothing is, raise the limit"
)


def status(lane: Lane, shared: Shared, now: Now) -> FragmentStatus:
    """The status of a lane's fragment."""
    running = lane.running
    unreachable = _unreachable(running, shared.ends, now.steady_ms)
    shown = shown_state(lane, catalog_current=shared.catalog_current, reachable=not unreachable)
    error = lane.tries.last_error
    if shown is LaneState.WAITING and unreachable:
        error = f"cannot be reached: topic {', '.join(unreachable)}"
    if shown is LaneState.RUNNING and running is not None:
        held = held_open(running.time, shared.ends, now.steady_ms)
        if held:
            shown, error = LaneState.WAITING, _open_transactions(held, now)
        elif running.time.is_full:
            shown, error = LaneState.WAITING, _FULL
    running = running if shown is LaneState.RUNNING else None
    by_topic = {} if running is None else lags_by_topic(running, now.steady_ms)
    marker = lane.marker
    totals, gap = (Totals(), None) if marker is None else (marker.totals, marker.gap)
    held_back = None if running is None else _held_back(lane, running, now)
    lag_ms = max((lag.age_ms for lag in by_topic.values()), default=None)
    stalled_ms = None if running is None else stalled_since(running, lag_ms, now.steady_ms)
    missing = "" if running is None else _missing(running, shared.ends, now)
    late = running.late if running is not None and running.late and running.late.is_shown else None
    rebuild = lane.phase.rebuilding if isinstance(lane.phase, Starting) else None
    found = FragmentStatus(
        network=lane.id.fragment.network,
        fragment=lane.id.fragment.fragment,
        node=shared.node,
        epoch=_epoch(lane, shared),
        state=shown,
        reported_at_ms=now.wall_ms,
        life=shared.life,
        records_in=totals.records_in,
        records_out=totals.records_out,
        lag_records=sum(lag.records for lag in by_topic.values()) if by_topic else None,
        lag_ms=lag_ms,
        boundary_ms=None if marker is None else marker.boundary_ms,
        dead_letters=totals.dead_letters,
        late_dropped=totals.late_dropped,
        skipped=totals.skipped,
        restarts=lane.tries.restarts,
        batch_ms=lane.batch_ms,
        last_error=error,
        rebuild_since_ms=now.wall_at(rebuild.since_ms) if rebuild else None,
        rebuild_offsets=rebuild.offsets if rebuild else 0,
        rebuild_read=rebuild.read if rebuild else 0,
        rebuild_batches=rebuild.batches if rebuild else 0,
        rebuild_batches_done=rebuild.batches_done if rebuild else 0,
        inputs=tuple((topic, by_topic[topic].records) for topic in sorted(by_topic)),
        held_by=held_back.stream if held_back else "",
        held_partition=held_back.partition if held_back else None,
        held_ms=held_back.by_ms if held_back else None,
        held_since_ms=now.wall_at(held_back.since_ms) if held_back else None,
        held_silent_since_ms=_silent_since(held_back, now),
        steps_ms=_steps(running.time) if running else None,
        stalled_since_ms=None if stalled_ms is None else now.wall_at(stalled_ms),
        event_ms=running.time.release.in_force_ms if running else None,
        late_since_ms=now.wall_at(late.since_ms) if late else None,
        late_span_ms=late.until_ms - late.since_ms if late else 0,
        late_read=late.read if late else 0,
        late_records=late.late if late else 0,
        pace_ms=running.fragment.pace_ms if running else 0,
        settles_at_ms=None if running is None else _settles_at(lane, running, now),
        unreachable=missing,
        writers=_writers(running) if running else (),
        expiring=lane.expiring.found,
        gap_until_ms=gap.until_ms if gap else None,
        gap_omitted=gap.offsets if gap else 0,
    )
    return found if running is None else _with_waits(found, running, now)


def _with_waits(found: FragmentStatus, running: Running, now: Now) -> FragmentStatus:
    """The status with what is known of waits and tentative results, also while the lane waits."""
    found, run = replace(found, waits=running.waits), running.tentative
    if run is None:
        return found
    state = run.state
    return replace(
        found,
        tentative=state.phase,
        tentative_since_ms=now.wall_at(state.since_ms),
        tentative_held_since_ms=None if state.held is None else now.wall_at(state.held.since_ms),
        tentative_missing=tuple(map(missing_text, state.missing)),
        tentative_generation=state.generation or "",
        tentative_published=state.counts.published,
        tentative_confirmed=state.counts.confirmed,
        tentative_replaced=state.counts.replaced,
        tentative_undone=state.counts.undone,
        tentative_open=state.counts.open_results,
        tentative_problem=one_line(state.problem),
        tentative_unsettled=one_line(state.unsettled),
    )


def _silent_since(held: HeldBack | None, now: Now) -> Millis | None:
    """Since when the input that holds event time back is silent; None: it is not."""
    if held is None or held.silent_since_ms is None:
        return None
    return now.wall_at(held.silent_since_ms)


def _epoch(lane: Lane, shared: Shared) -> Epoch:
    """The epoch of the last claim that is known to have come before this status.

    While the lane starts, a claim may be under way: the state is older than it. At rest none is, so
    the owner in the last snapshot counts: the answer to the last claim may have been lost.
    """
    owner = lane.assigned.owner if lane.assigned else None
    if owner is None or owner.node != shared.node:
        return lane.epoch
    rests = isinstance(lane.phase, Stopped | BackingOff | Failed)
    return max(lane.epoch, owner.epoch) if rests or lane.epoch == NO_EPOCH else lane.epoch


def _held_back(lane: Lane, running: Running, now: Now) -> HeldBack | None:
    """The input that holds back event time; silent inputs hold back no lane without open state.

    It is not further behind than the present: another input may have records of the future.
    """
    held = running.time.held
    if held is None:
        return None
    if held.by_ms != 0:
        behind_ms = _behind_present_ms(held.stream, running, now)
        if held.by_ms is None or behind_ms is None or held.by_ms <= behind_ms:
            return held
        return replace(held, by_ms=behind_ms) if behind_ms >= HELD_LEAST_MS else None
    spent = lane.marker is None or is_spent(running.time.profile.shape, lane.marker)
    return None if spent else held


def _steps(time: LaneTime) -> int | None:
    """How far event time is behind its inputs because it advances in steps; None: it is not.

    In a silence with nothing to release it moves rarely, and nothing waits for it.
    """
    return None if time.idle and time.is_spent else time.steps_ms


def _behind_present_ms(stream: StreamName, running: Running, now: Now) -> int | None:
    """How far the boundary of an external input is behind the present, less its lateness."""
    reached_ms = running.time.reached.get(stream)
    late_ms = max(i.lateness_ms for i in running.time.profile.inputs if i.stream == stream)
    return None if reached_ms is None else max(0, now.wall_ms - reached_ms - late_ms)


def _settles_at(lane: Lane, running: Running, now: Now) -> Millis | None:
    """When the clock has moved event time beyond every result to come; None: it does not move it.

    All inputs are idle, and some of what the state contains is still to be released.
    """
    time, marker = running.time, lane.marker
    if marker is None or not time.idle or time.is_spent:
        return None
    last_ms, target_ms = last_result_ms(time.profile.shape, marker), time.target_ms
    if last_ms is None or target_ms is None:
        return None
    behind_ms = last_ms + time.profile.shape.behind_ms - target_ms
    return Millis(now.wall_ms + max(0, behind_ms))


def _writers(running: Running) -> tuple[str, ...]:
    """The writers of the lane's derived inputs, sorted."""
    inputs = running.time.profile.inputs
    return tuple(sorted({one.writer for one in inputs if isinstance(one, DerivedInput)}))


def _open_transactions(held: tuple[HeldOpen, ...], now: Now) -> str:
    places = (
        f"topic {one.topic}, partition {one.partition}, offset {one.offset}, "
        f"since {instant(now.wall_at(one.since_ms))}"
        for one in held
    )
    return f"open transaction: {'; '.join(places)}"


def shown_state(lane: Lane, *, catalog_current: bool, reachable: bool) -> LaneState:
    """The state of a lane that `status` shows."""
    match lane.phase:
        case Stopped():
            return LaneState.STOPPED if lane.target is None else LaneState.PENDING
        case Starting(rebuilding=rebuilding):
            return LaneState.STARTING if rebuilding is None else LaneState.REBUILDING
        case Running() | Stopping():
            return LaneState.RUNNING if reachable else LaneState.WAITING
        case BackingOff() | Fenced():
            waiting = lane.tries.waits > 0 or not catalog_current
            return LaneState.WAITING if waiting else LaneState.RESTARTING
        case Failed():
            return LaneState.FAILED


def _missing(running: Running, ends: Ends | None, now: Now) -> str:
    """The input partitions that have not answered for some time, or not with records."""
    topics = {lane_input.topic for lane_input in running.time.profile.inputs}
    found = {} if ends is None else ends.missing
    long = {at: ms for at, ms in found.items() if now.steady_ms - ms >= ENDS_FRESH_MS}
    return "; ".join(
        f"topic {topic}, partition {partition}, since {instant(now.wall_at(since_ms))}"
        for (topic, partition), since_ms in sorted((long | dict(running.time.silent)).items())
        if topic in topics
    )


def _unreachable(
    running: Running | None, ends: Ends | None, now_ms: SteadyMillis
) -> tuple[TopicName, ...]:
    """The input topics that did not answer lately; empty while the lane has hardly started."""
    if running is None:
        return ()
    time = running.time
    topics = tuple(sorted({lane_input.topic for lane_input in time.profile.inputs}))
    if ends is None or ends.read_at_ms < time.started_ms:
        return topics if now_ms - time.started_ms > ENDS_FRESH_MS else ()
    if not ends.fresh(now_ms):
        return topics
    return tuple(topic for topic in topics if topic not in ends.by_topic)

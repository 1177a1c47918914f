"""Status of a fragment: counts from its marker, lag from positions and ends."""

from dataclasses import dataclass, replace

from pipeline.agent.now import Now
from pipeline.agent.state import (
    BackingOff,
    Failed,
    Fenced,
    Lane,
    ObservedEnds,
    Running,
    Shared,
    Starting,
    Stopped,
    Stopping,
)
from pipeline.boundaries.derived import covers
from pipeline.boundaries.held import HeldBack
from pipeline.boundaries.lane_time import (
    ENDS_FRESH_MS,
    Ends,
    HeldOpen,
    finished_in,
    held_open,
)
from pipeline.boundaries.profile import DerivedInput, LaneInput
from pipeline.boundaries.promise import is_spent
from pipeline.catalog.records import FragmentStatus, LaneState
from pipeline.ids import NO_EPOCH, Epoch, SteadyMillis, TopicName
from pipeline.markers.commit_marker import Totals
from pipeline.planner.instants import instant

ENDS_LOG_MAX = 64
"""Observed ends kept per input. At two a second they reach back half a minute exactly, and further
with decreasing resolution, which is enough for the age of an old lag."""


STALLED_LEAST_MS = 30_000
"""How long records may be unread without the end of a batch before `status` shows it."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a lane at one input.

    `age_ms` is the greatest possible age of its oldest unfinished record: the time since the topic
    last ended at the lane's present position. For a lane that was behind from its start, it is
    the time since its last batch before that: records unread then may have waited since.
    """

    records: int = 0
    age_ms: int = 0


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
    if shown is not LaneState.RUNNING:
        running = None
    by_topic = {} if running is None else _lags(running, now.steady_ms)
    totals = Totals() if lane.marker is None else lane.marker.totals
    held_back = None if running is None else _held_back(lane, running)
    lag_ms = max((lag.age_ms for lag in by_topic.values()), default=None)
    stalled_ms = None if running is None else _stalled_since(running, lag_ms, now.steady_ms)
    silent_ms = held_back.silent_since_ms if held_back else None
    rebuild = lane.phase.rebuilding if isinstance(lane.phase, Starting) else None
    return FragmentStatus(
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
        boundary_ms=None if lane.marker is None else lane.marker.boundary_ms,
        dead_letters=totals.dead_letters,
        late_dropped=totals.late_dropped,
        skipped=totals.skipped,
        restarts=lane.tries.restarts,
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
        steps_ms=running.time.steps_ms if running else None,
        stalled_since_ms=None if stalled_ms is None else now.wall_at(stalled_ms),
        writers=_writers(running) if running else (),
    )


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


def _held_back(lane: Lane, running: Running) -> HeldBack | None:
    """The input that holds back event time; silent inputs hold back no lane without open state."""
    held = running.time.held
    if held is None or held.by_ms != 0:
        return held
    spent = lane.marker is None or is_spent(running.time.profile.shape, lane.marker)
    return None if spent else held


def _stalled_since(
    running: Running, lag_ms: int | None, now_ms: SteadyMillis
) -> SteadyMillis | None:
    """Since when records are unread and no batch has ended; None: not for long, or unknown."""
    waited_ms = min(lag_ms or 0, now_ms - running.batch_ended_ms)
    return SteadyMillis(now_ms - waited_ms) if waited_ms >= STALLED_LEAST_MS else None


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


def with_observed_ends(running: Running, ends: Ends) -> Running:
    """A lane with observed ends recorded, until it has processed the records before them."""
    logs, time = dict(running.ends_log), running.time
    for lane_input in time.profile.inputs:
        answer = ends.by_topic.get(lane_input.topic)
        if answer is None:
            continue
        finished = finished_in(time.positions, lane_input)
        log = (*logs.get(lane_input.stream, ()), ObservedEnds(ends.read_at_ms, answer))
        newest_finished = max((i for i, e in enumerate(log) if covers(finished, e.ends)), default=0)
        log = log[newest_finished:]
        logs[lane_input.stream] = log if len(log) <= ENDS_LOG_MAX else (*log[:-1:2], log[-1])
    return replace(running, ends_log=logs)


def _lags(running: Running, now_ms: SteadyMillis) -> dict[TopicName, Lag]:
    """The lag per topic; empty as long as the end of one of them is unknown."""
    inputs = running.time.profile.inputs
    if any(not running.ends_log.get(lane_input.stream) for lane_input in inputs):
        return {}
    found: dict[TopicName, Lag] = {}
    for lane_input in inputs:
        lag = _lag(running, lane_input, now_ms)
        other = found.get(lane_input.topic, Lag())
        found[lane_input.topic] = Lag(
            records=other.records + lag.records, age_ms=max(other.age_ms, lag.age_ms)
        )
    return found


def _lag(running: Running, lane_input: LaneInput, now_ms: SteadyMillis) -> Lag:
    log = running.ends_log[lane_input.stream]
    finished = finished_in(running.time.positions, lane_input)
    if covers(finished, log[-1].ends):
        return Lag()
    records = sum(max(0, end - finished.get(p, 0)) for p, end in log[-1].ends.items())
    before = min(log[0].at_ms, running.read_at_ms)
    since = max((e.at_ms for e in log if covers(finished, e.ends)), default=before)
    return Lag(records, max(0, now_ms - since))


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

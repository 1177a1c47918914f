"""(state, event, now) → (state, effects): every decision of a node's agent, without doing anything.

Each event is first taken in as a fact. Then every lane is looked at: does it have to start or stop,
may its event time move, is its status due? While the catalog is in doubt nothing is started and no
status is written; lanes that run go on, and so does their event time, since Kafka fences them if
somebody else took over.
"""

import zlib
from dataclasses import replace

from pipeline.boundaries import lane_time
from pipeline.boundaries.derived import PendingBoundary, WriterSeen, heard, told_activity
from pipeline.boundaries.lane_time import Ends
from pipeline.boundaries.profile import DerivedInput
from pipeline.boundaries.promise import is_spent
from pipeline.brain.events import (
    ActivityRead,
    BoundariesWatched,
    BoundaryRead,
    CatalogLost,
    CatalogRead,
    Desired,
    Effect,
    EndsRead,
    Event,
    NotePromises,
    PublishStatus,
    SayActivity,
    SendAdvance,
    StartLane,
    StopLane,
    Tick,
)
from pipeline.brain.now import Now
from pipeline.brain.state import Lane, NodeState, Rebuilding
from pipeline.brain.status import ends_noted, status
from pipeline.errors import BrokenInvariantError
from pipeline.ids import NO_EPOCH, SteadyMillis
from pipeline.lanes.events import (
    BatchFinished,
    FragmentId,
    LaneRebuilding,
    LaneStarted,
    LaneStopped,
)
from pipeline.lanes.lifecycle import Happening, Phase

BACK_OFF_FIRST_MS = 1_000
BACK_OFF_MAX_MS = 60_000
"""A failing lane tries again after one second, then twice as long each time, up to a minute."""
FAILURES_MAX = 10
"""So many failures in a row end the tries: after about five minutes somebody has to look. External
ones (see `MedusaError`) do not count: when their cause ends, the next try goes through."""
_GIVEN_UP = "given up after {} failures in a row: `medusa pause` and `medusa resume` try again"
IDLE_SAID_MS = 1_000
"""An idle lane says so once a second: its readers believe it for five."""
SUCCESS_MS = 300_000
"""A lane that ran this long has recovered: its next failure is the first again."""
STATUS_LEAST_MS = 1_000
"""Between two reports of a fragment: a catalog of a hundred fragments stays calm."""
STATUS_MOST_MS = 2_000
"""An unchanged report is repeated after this time, so that an old one means a silent node."""


def decide(state: NodeState, event: Event, now: Now) -> tuple[NodeState, tuple[Effect, ...]]:
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
    state = _noted(state, event, now)
    effects: list[Effect] = []
    for fragment in sorted(state.lanes):
        lane, asked = _reconciled(state.lanes[fragment], state, now)
        effects.extend(asked)
        if isinstance(event, LaneStarted) and event.fragment == fragment and _too_late(lane, asked):
            effects.append(StopLane(fragment))
        if lane.phase is Phase.RUNNING and _concerns(event, lane):
            for step in (_advanced, _with_activity, _with_promises):
                lane, asked = step(lane, state, now)
                effects.extend(asked)
        if lane.phase is Phase.STOPPED and lane.desired is None:
            others = {f: other for f, other in state.lanes.items() if f != fragment}
            state = replace(state, lanes=others)
            continue
        state = state.with_lane(lane)
        if _report_due(state, lane, now):
            report = status(state, fragment, now)
            state = state.with_lane(replace(lane, published=report, published_at_ms=now.steady_ms))
            effects.append(PublishStatus(fragment))
    return state, tuple(effects)


def back_off_ms(fragment: FragmentId, failures: int) -> int:
    """How long to wait before the next try.

    Up to a quarter less than the doubled time, by a hash of the fragment's name and the number of
    failures, so that the lanes of a node which lost its broker do not all come back at once.
    """
    full = min(BACK_OFF_MAX_MS, BACK_OFF_FIRST_MS << min(max(failures - 1, 0), 16))
    name = f"{fragment.network}.{fragment.fragment}.{failures}"
    return full - full * (zlib.crc32(name.encode()) % 1_000) // 4_000


# --- facts --------------------------------------------------------------------------------------


def _noted(state: NodeState, event: Event, now: Now) -> NodeState:
    match event:
        case CatalogRead(desired):
            state = _catalog_read(state, desired, now)
        case CatalogLost():
            state = replace(state, catalog_known=False)
        case LaneStarted():
            state = state.with_lane(_started(state, event, now))
        case LaneRebuilding() | BatchFinished() | LaneStopped():
            lane = state.lanes.get(event.fragment)
            state = state if lane is None else state.with_lane(_heard(lane, event, now))
        case BoundariesWatched(watched):
            kept = {one: state.writers.get(one, WriterSeen()) for one in sorted(watched)}
            state = replace(state, writers=kept)
        case BoundaryRead():
            state = _boundary_read(state, event)
        case ActivityRead():
            state = _activity_read(state, event, now)
        case EndsRead(read_at_ms, ends, written):
            ends_now = lane_time.ends_of(state.ends, read_at_ms, ends, written)
            state = _ends_read(state, ends_now, now)
        case Tick():
            pass
    return state


def _catalog_read(state: NodeState, desired: tuple[Desired, ...], now: Now) -> NodeState:
    wanted, known = {one.fragment: one for one in desired}, state.catalog_known
    lanes = {
        fragment: _assigned(state.lanes.get(fragment, Lane(fragment)), wanted.get(fragment), now)
        for fragment in sorted({*state.lanes, *wanted})
    }
    state = replace(state, lanes=lanes, catalog_known=True)
    return state if known else _answered(state, now)


def _assigned(lane: Lane, desired: Desired | None, now: Now) -> Lane:
    """The lane with what the catalog wants of it now.

    A change forgives earlier failures. A fenced lane hears from the catalog here, and only here,
    that it is still wanted on this node.
    """
    if desired != lane.desired:
        lane = replace(lane, desired=desired, failures=0, waits=0, last_error="")
        if lane.phase in (Phase.BACKING_OFF, Phase.FAILED):
            lane = lane.moved(Happening.RESET)
    if lane.phase is Phase.FENCED and lane.wanted is not None:
        wait_ms = back_off_ms(lane.fragment, lane.failures)
        lane = replace(
            lane.moved(Happening.READMITTED), retry_at_ms=SteadyMillis(now.steady_ms + wait_ms)
        )
    return lane


def _started(state: NodeState, event: LaneStarted, now: Now) -> Lane:
    lane = state.lanes.get(event.fragment)
    if lane is None:
        place = f"fragment {event.fragment.network}.{event.fragment.fragment}"
        raise BrokenInvariantError("a lane started that nobody asked for", place=place)
    lane = replace(
        lane.moved(Happening.STARTED),
        epoch=event.epoch,
        incarnation=event.incarnation,
        marker=event.marker,
        time=lane_time.begin(event.profile, event.marker, state.writers, now.steady_ms),
        rebuilding=None,
        read_at_ms=now.steady_at(event.marker.written_at_ms),
        running_since_ms=now.steady_ms,
        retry_at_ms=None,
        said_idle_at_ms=now.steady_ms,  # the lane before it may have said so
        promised={},
        ends_log={},
    )
    return lane if state.ends is None else ends_noted(lane, state.ends)


def _heard(lane: Lane, event: LaneRebuilding | BatchFinished | LaneStopped, now: Now) -> Lane:
    match event:
        case LaneRebuilding():
            since_ms = now.steady_ms if lane.rebuilding is None else lane.rebuilding.since_ms
            how_far = Rebuilding(since_ms, event.offsets, event.read)
            return replace(lane, epoch=event.epoch, rebuilding=how_far)
        case BatchFinished():
            return _finished(lane, event, now)
        case LaneStopped():
            return _stopped(lane, event, now)


def _finished(lane: Lane, event: BatchFinished, now: Now) -> Lane:
    """A batch of the running lane; those of an earlier run are nothing to it any more."""
    if lane.phase not in (Phase.RUNNING, Phase.STOPPING) or lane.time is None:
        if event.epoch <= lane.epoch:
            return lane
        message = f"a batch finished in a lane that is {lane.phase.value}"
        raise BrokenInvariantError(message, place=lane.place)
    if event.epoch != lane.epoch:
        return lane
    return replace(
        lane,
        marker=event.marker,
        batch_ms=event.duration_ms,
        time=lane_time.batch_finished(lane.time, event.marker, event.rows_out, now.steady_ms),
    )


def _stopped(lane: Lane, event: LaneStopped, now: Now) -> Lane:
    ran = lane.phase in (Phase.RUNNING, Phase.STOPPING)
    if ran and NO_EPOCH < event.epoch < lane.epoch:
        return lane
    asked = lane.phase is Phase.STOPPING and not event.fenced
    failures, waits = _failures(lane, event, now) if not asked else (lane.failures, lane.waits)
    error = event.error or ("" if asked else "the query ended without being asked to")
    if asked:
        happening = Happening.ENDED
    elif lane.phase is not Phase.STOPPING and not event.external and failures >= FAILURES_MAX:
        happening = Happening.GAVE_UP
        error = f"{error} ({_GIVEN_UP.format(failures)})"
    elif event.fenced:
        happening = Happening.FENCED
    else:
        happening = Happening.CRASHED if event.retry else Happening.GAVE_UP
    return replace(
        lane.moved(happening),
        epoch=max(lane.epoch, event.epoch),
        incarnation=None,
        time=None,
        rebuilding=None,
        running_since_ms=None,
        failures=failures,
        waits=waits,
        retry_at_ms=SteadyMillis(now.steady_ms + back_off_ms(lane.fragment, failures + waits)),
        last_error=error or lane.last_error,
        ends_log={},
    )


def _failures(lane: Lane, event: LaneStopped, now: Now) -> tuple[int, int]:
    """Failures in a row with this one, and external ones; a lane that recovered begins anew."""
    since = lane.running_since_ms
    recovered = since is not None and now.steady_ms - since >= SUCCESS_MS
    failures, waits = (0, 0) if recovered else (lane.failures, lane.waits)
    return (failures, waits + 1) if event.external else (failures + 1, 0)


def _boundary_read(state: NodeState, event: BoundaryRead) -> NodeState:
    boundary = PendingBoundary(event.boundary_ms, event.positions)
    known = state.writers.get(event.writer)
    if known is None:  # of a topic that was deleted, or of somebody who writes none of our inputs
        return state
    known = heard(known, event.epoch, boundary)
    state = replace(state, writers={**state.writers, event.writer: known})
    for lane in state.lanes.values():
        if lane.time is not None:
            moved = lane_time.boundary_read(lane.time, event.writer, event.epoch, boundary)
            state = state.with_lane(replace(lane, time=moved))
    return state


def _activity_read(state: NodeState, event: ActivityRead, now: Now) -> NodeState:
    known = state.writers.get(event.writer)
    if known is None:
        return state
    told = told_activity(known, event.epoch, idle=event.idle, at_ms=now.steady_ms)
    state = replace(state, writers={**state.writers, event.writer: told})
    for lane in state.lanes.values():
        if lane.time is not None:
            moved = lane_time.activity_read(
                lane.time, event.writer, event.epoch, idle=event.idle, at_ms=now.steady_ms
            )
            state = state.with_lane(replace(lane, time=moved))
    return state


def _ends_read(state: NodeState, ends: Ends, now: Now) -> NodeState:
    before = state.ends
    if before is not None and ends.by_topic.keys() - before.by_topic.keys():
        state = _answered(state, now)
    state = replace(state, ends=ends)
    for lane in state.lanes.values():
        if lane.time is not None:
            moved = lane_time.ends_read(lane.time, before, ends)
            state = state.with_lane(ends_noted(replace(lane, time=moved), ends))
    return state


def _answered(state: NodeState, now: Now) -> NodeState:
    """A server answers again: lanes that failed for an external cause are tried soon."""
    for lane in state.lanes.values():
        if lane.phase is Phase.BACKING_OFF and lane.waits and lane.retry_at_ms is not None:
            soon_ms = SteadyMillis(now.steady_ms + back_off_ms(lane.fragment, 1))
            soon = replace(lane, waits=1, retry_at_ms=min(lane.retry_at_ms, soon_ms))
            state = state.with_lane(soon)
    return state


# --- decisions ----------------------------------------------------------------------------------


def _reconciled(lane: Lane, state: NodeState, now: Now) -> tuple[Lane, tuple[Effect, ...]]:
    """Bring what is and what is wanted of a lane together, as far as one step goes."""
    lane = _of_its_life(lane)
    wanted = lane.wanted
    if lane.phase in (Phase.STARTING, Phase.RUNNING):
        if lane.started == wanted and not lane_time.has_grown(lane.time, state.ends):
            return lane, ()
        stop: tuple[Effect, ...] = (StopLane(lane.fragment),)
        if lane.said_idle_at_ms is not None:  # what comes while nobody runs it is still to be read
            stop = (*stop, SayActivity(lane.fragment, lane.epoch, idle=False))
        return replace(lane.moved(Happening.STOP_ASKED), said_idle_at_ms=None), stop
    if wanted is None:
        if lane.phase in (Phase.BACKING_OFF, Phase.FENCED, Phase.FAILED):
            lane = lane.moved(Happening.RESET)
        return lane, ()
    if not (state.catalog_known and _may_start(lane, now)):
        return lane, ()
    again = lane.phase is Phase.BACKING_OFF
    lane = replace(
        lane.moved(Happening.START_ASKED), started=wanted, restarts=lane.restarts + again
    )
    return lane, (StartLane(lane.fragment, wanted.life, wanted.version),)


def _of_its_life(lane: Lane) -> Lane:
    """The lane without facts of an earlier life of its network, once the lane of that has ended.

    The epoch stays: epochs are counted across lives.
    """
    started, desired = lane.started, lane.desired
    active = lane.phase in (Phase.STARTING, Phase.RUNNING, Phase.STOPPING)
    if active or started is None or desired is None or started.life == desired.life:
        return lane
    return Lane(lane.fragment, desired=desired, epoch=lane.epoch)


def _too_late(lane: Lane, asked: tuple[Effect, ...]) -> bool:
    """Whether a lane that just started was asked to stop before: it may not have heard."""
    return lane.phase is Phase.STOPPING and not asked


def _may_start(lane: Lane, now: Now) -> bool:
    if lane.phase is Phase.BACKING_OFF:
        return lane.retry_at_ms is None or now.steady_ms >= lane.retry_at_ms
    return lane.phase is Phase.STOPPED


def _concerns(event: Event, lane: Lane) -> bool:
    """Whether an event can move a lane's event time."""
    match event:
        case BatchFinished(fragment) | LaneStarted(fragment):
            return fragment == lane.fragment
        case BoundaryRead(writer) | ActivityRead(writer):
            return lane.time is not None and any(
                isinstance(lane_input, DerivedInput) and lane_time.writer_of(lane_input) == writer
                for lane_input in lane.time.profile.inputs
            )
        case EndsRead() | Tick():
            return True
        case CatalogRead() | CatalogLost() | LaneRebuilding() | LaneStopped():
            return False
        case BoundariesWatched():
            return False


def _advanced(lane: Lane, state: NodeState, now: Now) -> tuple[Lane, tuple[Effect, ...]]:
    incarnation = lane.incarnation
    if lane.time is None or incarnation is None:
        return lane, ()
    time, value = lane_time.advance(lane.time, state.ends, now.steady_ms)
    lane = replace(lane, time=time)
    if value is None:
        return lane, ()
    return lane, (SendAdvance(lane.fragment, incarnation, value),)


def _with_activity(lane: Lane, _: NodeState, now: Now) -> tuple[Lane, tuple[Effect, ...]]:
    """Tell readers that the lane is idle, now and then as long as it is; and once when it ends."""
    time, marker, said_ms = lane.time, lane.marker, lane.said_idle_at_ms
    if time is None or marker is None:
        return lane, ()
    idle = lane.phase is Phase.RUNNING and time.idle and is_spent(time.profile.shape, marker)
    if idle:
        if said_ms is not None and now.steady_ms - said_ms < IDLE_SAID_MS:
            return lane, ()
        lane = replace(lane, said_idle_at_ms=now.steady_ms)
    elif said_ms is None:
        return lane, ()
    else:
        lane = replace(lane, said_idle_at_ms=None)
    return lane, (SayActivity(lane.fragment, lane.epoch, idle),)


def _with_promises(lane: Lane, _: NodeState, __: Now) -> tuple[Lane, tuple[Effect, ...]]:
    """Tell the lane what its writers have promised, if that has changed."""
    promised = {} if lane.time is None else lane_time.promised(lane.time)
    if promised == lane.promised:
        return lane, ()
    return replace(lane, promised=promised), (NotePromises(lane.fragment, promised),)


def _report_due(state: NodeState, lane: Lane, now: Now) -> bool:
    """Whether to report: something changed, or the last report grows old; never too often."""
    if not state.catalog_known or lane.desired is None:
        return False
    last, at_ms = lane.published, lane.published_at_ms
    if last is None or at_ms is None:
        return True
    age_ms = now.steady_ms - at_ms
    if age_ms < STATUS_LEAST_MS:
        return False
    if age_ms >= STATUS_MOST_MS:
        return True
    report = status(state, lane.fragment, now)
    return replace(report, reported_at_ms=last.reported_at_ms) != last

"""Events of a lane's run: it started, finished a batch, ended, or waits for its plan."""

from dataclasses import replace

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.effects import StartLane
from pipeline.agent.events import Event, PlanFailed, PlanMade
from pipeline.agent.lag import with_observed_ends
from pipeline.agent.late import with_batch
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import (
    BackingOff,
    Failed,
    Fenced,
    Lane,
    LanePhase,
    Rebuilding,
    Running,
    Shared,
    Starting,
    Stopped,
    Stopping,
    Tries,
)
from pipeline.boundaries import lane_time
from pipeline.catalog.snapshot import VersionId
from pipeline.errors import BrokenInvariantError, MedusaError
from pipeline.ids import NO_EPOCH, Epoch, SteadyMillis
from pipeline.lanes.events import (
    BatchFinished,
    LaneRebuilding,
    LaneStarted,
    LaneStopped,
    LaneTimed,
    LaneWaited,
    stopped_by,
)
from pipeline.lanes.lifecycle import Happening

FAILURES_MAX = 10
"""Failures in a row that end the tries, after about five minutes: a user has to act. External ones
(see `MedusaError`) do not count: when their cause ends, the next try succeeds."""
_GIVEN_UP = "given up after {} failures in a row: `medusa pause` and `medusa resume` try again"
SUCCESS_MS = 300_000
"""A lane that ran this long has recovered: its next failure is the first again."""


def follow_run(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Apply an event of the lane's current run; events of earlier runs are ignored.

    Raises:
        BrokenInvariantError: the event is impossible in the lane's phase.
    """
    match event:
        case PlanMade(version) | PlanFailed(version):
            return _planned(lane, shared, version, now)
        case (
            LaneStarted()
            | LaneTimed()
            | LaneWaited()
            | LaneRebuilding()
            | BatchFinished()
            | LaneStopped()
        ):
            if event.lane != lane.id or event.run < lane.run:
                return lane, ()
            if event.run > lane.run:
                message = f"run {event.run} of a lane whose last run is {lane.run}"
                raise BrokenInvariantError(message, place=lane.place)
            return _followed(lane, shared, event, now), ()
        case _:
            return lane, ()


def _planned(lane: Lane, shared: Shared, version: VersionId, now: Now) -> tuple[Lane, Effects]:
    """Start a lane whose start waits for its plan; without a plan, its start has failed."""
    phase = lane.phase
    if not isinstance(phase, Starting) or phase.fragment is not None:
        return lane, ()
    if phase.deployed.version != version:
        return lane, ()
    found = shared.plans.failed.get(version) or shared.plans.fragment(phase.deployed)
    if isinstance(found, MedusaError):
        return failed_start(lane, found, now), ()
    if found is None:
        return lane, ()
    lane = replace(lane, phase=replace(phase, fragment=found))
    return lane, (StartLane(lane.id, lane.run, phase.deployed, found),)


def failed_start(lane: Lane, error: MedusaError, now: Now) -> Lane:
    """The lane after a start that has failed before anything ran."""
    return _stopped(lane, stopped_by(lane.id, lane.run, NO_EPOCH, error), now)


def _followed(
    lane: Lane,
    shared: Shared,
    event: LaneStarted | LaneTimed | LaneWaited | LaneRebuilding | BatchFinished | LaneStopped,
    now: Now,
) -> Lane:
    match event:
        case LaneStarted():
            return _started(lane, shared, event, now)
        case LaneTimed(time=time):
            running = lane.running
            return lane if running is None else lane.with_running(replace(running, time=time))
        case LaneWaited(waits=waits):
            running = lane.running
            return lane if running is None else lane.with_running(replace(running, waits=waits))
        case LaneRebuilding():
            return _rebuilding(lane, event, now)
        case BatchFinished():
            return _finished(lane, event, now)
        case LaneStopped():
            return _stopped(lane, event, now)


def _started(lane: Lane, shared: Shared, event: LaneStarted, now: Now) -> Lane:
    stopping = isinstance(lane.phase, Stopping)
    start = lane.phase.start if isinstance(lane.phase, Stopping) else lane.phase
    if not isinstance(start, Starting) or start.fragment is None:
        raise BrokenInvariantError("a lane started that was not asked to", place=lane.place)
    running = Running(
        desired=start.desired,
        fragment=start.fragment,
        time=event.time,
        since_ms=now.steady_ms,
        batch_ended_ms=now.steady_ms,
        read_at_ms=now.steady_at(event.marker.written_at_ms),
        idle_sent_at_ms=now.steady_ms,  # the previous lane may have sent it
    )
    if shared.ends is not None:
        running = with_observed_ends(running, shared.ends)
    after: LanePhase = Stopping(None, running) if stopping else running
    lane = lane.moved(Happening.STARTED, after)
    return replace(lane, epoch=event.epoch, marker=event.marker)


def _rebuilding(lane: Lane, event: LaneRebuilding, now: Now) -> Lane:
    lane = replace(lane, epoch=event.epoch)
    if not isinstance(lane.phase, Starting):
        return lane
    known = lane.phase.rebuilding
    since_ms = now.steady_ms if known is None else known.since_ms
    how_far = Rebuilding(since_ms, event.offsets, event.read, event.batches, event.batches_done)
    return replace(lane, phase=replace(lane.phase, rebuilding=how_far))


def _finished(lane: Lane, event: BatchFinished, now: Now) -> Lane:
    """Apply a finished batch; a batch reported after the lane has ended changes nothing more."""
    running = lane.running
    if running is None:
        if isinstance(lane.phase, Starting | Stopping):
            message = f"a batch finished in a lane that is {lane.phase.phase.value}"
            raise BrokenInvariantError(message, place=lane.place)
        return lane
    now_ms, late = now.steady_ms, running.late
    time = lane_time.batch_finished(running.time, event.marker, event.rows_out, now_ms)
    if lane.marker is not None:
        late = with_batch(late, lane.marker.totals, event.marker.totals, now_ms)
    lane = replace(lane, marker=event.marker, batch_ms=event.duration_ms)
    return lane.with_running(replace(running, time=time, batch_ended_ms=now_ms, late=late))


def _stopped(lane: Lane, event: LaneStopped, now: Now) -> Lane:
    requested = isinstance(lane.phase, Stopping) and not event.fenced
    tries = lane.tries if requested else _after_failure(lane, event, now)
    error = event.error or ("" if requested else "the query ended without being asked to")
    wait_ms = back_off_ms(lane.id.fragment, tries.failures + tries.waits)
    happening, after = _end(lane, event, tries, SteadyMillis(now.steady_ms + wait_ms))
    if happening is Happening.GAVE_UP and _too_many(tries, event):
        error = f"{error} ({_GIVEN_UP.format(tries.failures)})"
    lane = lane.moved(happening, after)
    return replace(
        lane,
        epoch=Epoch(max(lane.epoch, event.epoch)),
        tries=replace(tries, last_error=error or tries.last_error),
    )


def _end(
    lane: Lane, event: LaneStopped, tries: Tries, retry_at_ms: SteadyMillis
) -> tuple[Happening, LanePhase]:
    """The lifecycle event of the end of a run, and the phase after it."""
    stopping = isinstance(lane.phase, Stopping)
    if stopping and not event.fenced:
        return Happening.ENDED, Stopped()
    if not stopping and _too_many(tries, event):
        return Happening.GAVE_UP, Failed()
    if event.fenced:
        return Happening.FENCED, Fenced()
    if event.retry:
        return Happening.CRASHED, BackingOff(retry_at_ms)
    return Happening.GAVE_UP, Failed()


def _too_many(tries: Tries, event: LaneStopped) -> bool:
    return not event.external and tries.failures >= FAILURES_MAX


def _after_failure(lane: Lane, event: LaneStopped, now: Now) -> Tries:
    """The counts of failures after this one; a lane that ran long enough starts at zero again."""
    running, tries = lane.running, lane.tries
    if running is not None and now.steady_ms - running.since_ms >= SUCCESS_MS:
        tries = replace(tries, failures=0, waits=0)
    if event.external:
        return replace(tries, waits=tries.waits + 1)
    return replace(tries, failures=tries.failures + 1, waits=0)

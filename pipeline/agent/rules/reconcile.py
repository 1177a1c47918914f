"""Reconciliation of a lane's phase with its desired state, one step at a time."""

from dataclasses import replace

from pipeline.agent.effects import Effect, StartLane, StopLane
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.activity import activity_signal
from pipeline.agent.rules.rule import Effects
from pipeline.agent.rules.runs import failed_start
from pipeline.agent.state import (
    BackingOff,
    Desired,
    Failed,
    Fenced,
    Lane,
    Running,
    Shared,
    Starting,
    Stopped,
    Stopping,
)
from pipeline.boundaries import lane_time
from pipeline.errors import MedusaError
from pipeline.ids import RunNumber
from pipeline.lanes.events import LaneStarted
from pipeline.lanes.lifecycle import Happening


def reconcile(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Start or stop the lane, or leave it as it is.

    While the catalog is in doubt nothing is started, nor while as many lanes run as may: one that
    takes the place of another one starts when that has ended.
    """
    lane = _without_earlier_life(lane)
    phase, target = lane.phase, lane.target
    match phase:
        case Starting() | Running() if phase.desired == target and not _has_grown(phase, shared):
            return lane, ()
        case Starting(fragment=None):  # nothing runs yet
            lane = lane.moved(Happening.STOP_ASKED, Stopping(phase, None))
            lane = lane.moved(Happening.ENDED, Stopped())
        case Starting():
            return lane.moved(Happening.STOP_ASKED, Stopping(phase, None)), (StopLane(lane.id),)
        case Running():
            return _stopping(lane, phase, is_leaving=lane.id.fragment in shared.leaving)
        case Stopping():  # it has just started and may have missed the first request
            again = isinstance(event, LaneStarted) and event.lane == lane.id
            return lane, (StopLane(lane.id),) if again else ()
        case BackingOff() | Fenced() | Failed() if target is None:
            lane = lane.moved(Happening.RESET, Stopped())
        case _:
            pass
    may_start = shared.catalog_current and not shared.is_full and _may_start(lane, now)
    if target is None or not may_start:
        return lane, ()
    return _starting(lane, target, shared, now)


def _without_earlier_life(lane: Lane) -> Lane:
    """The lane without facts of an earlier life of its network, once its run has ended.

    The epoch remains: epochs are counted across lives. So does the number of the run.
    """
    if lane.is_active or lane.life is None or lane.assigned is None:
        return lane
    if lane.life == lane.assigned.network.life:
        return lane
    return Lane(lane.id, lane.assigned, lane.desired, epoch=lane.epoch, run=lane.run)


def _has_grown(phase: Starting | Running, shared: Shared) -> bool:
    return isinstance(phase, Running) and lane_time.has_grown(phase.time, shared.ends)


def _stopping(lane: Lane, running: Running, *, is_leaving: bool) -> tuple[Lane, Effects]:
    effects: list[Effect] = [StopLane(lane.id)]
    # Records that arrive while the lane is stopped are still unread, so it is not idle. The topic
    # of a lane that is neither assigned nor leaving may be deleted, or it has a new owner, which
    # sends the activity now.
    if running.idle_sent_at_ms is not None and (lane.assigned is not None or is_leaving):
        effects.append(activity_signal(lane, running, idle=False))
    after = Stopping(None, replace(running, idle_sent_at_ms=None))
    return lane.moved(Happening.STOP_ASKED, after), tuple(effects)


def _may_start(lane: Lane, now: Now) -> bool:
    if isinstance(lane.phase, BackingOff):
        return now.steady_ms >= lane.phase.retry_at_ms
    return isinstance(lane.phase, Stopped)


def _starting(lane: Lane, target: Desired, shared: Shared, now: Now) -> tuple[Lane, Effects]:
    """Request a start; if its plan is not made yet, the start waits for it."""
    deployed = lane.assigned
    if deployed is None:
        return lane, ()
    again = isinstance(lane.phase, BackingOff)
    found = shared.plans.fragment(deployed)
    fragment = None if isinstance(found, MedusaError) else found
    lane = replace(
        lane.moved(Happening.START_ASKED, Starting(target, deployed, fragment, now.steady_ms)),
        run=RunNumber(lane.run + 1),
        life=target.life,
        tries=replace(lane.tries, restarts=lane.tries.restarts + again),
    )
    if isinstance(found, MedusaError):
        return failed_start(lane, found, now), ()
    if fragment is None:
        return lane, ()
    return lane, (StartLane(lane.id, lane.run, deployed, fragment),)

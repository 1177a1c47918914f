"""Reports of tentative results: what is known of them, and their entries of the event log."""

from dataclasses import replace

from pipeline.agent.effects import LogEvent
from pipeline.agent.events import Event
from pipeline.agent.logged import published, settled, tentative_failed
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Shared
from pipeline.agent.tentative import TentativeRun, with_state
from pipeline.lanes.events import LaneTentative
from pipeline.lanes.fork_phases import ForkPhase


def follow_tentative(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Apply a report of the lane's current run."""
    running = lane.running
    if not isinstance(event, LaneTentative) or (event.lane, event.run) != (lane.id, lane.run):
        return lane, ()
    if running is None:
        return lane, ()
    before, after = running.tentative, with_state(running.tentative, event.state)
    effects = _logged(lane, before, after, shared, now)
    kept = after.ended() if after.is_over else after
    return lane.with_running(replace(running, tentative=kept)), effects


def _logged(
    lane: Lane, before: TentativeRun | None, after: TentativeRun, shared: Shared, now: Now
) -> Effects:
    state, was = after.state, None if before is None else before.state
    by = lane.id.fragment, shared.node, lane.epoch
    found: list[LogEvent] = []
    if was is None or was.phase is not state.phase:
        if state.phase is ForkPhase.PUBLISHING:
            found.append(LogEvent(published(*by, state, now)))
        if state.phase is ForkPhase.RESTING and (was is None or was.problem != state.problem):
            found.append(LogEvent(tentative_failed(*by, state, now)))
    if after.is_over:
        found.append(LogEvent(settled(*by, after, now)))
    return tuple(found)

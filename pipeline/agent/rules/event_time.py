"""Inputs of a lane's event time: boundaries, activity of its writers, ends of its topics."""

from dataclasses import replace

from pipeline.agent.events import ActivityRead, BoundaryRead, EndsRead, Event
from pipeline.agent.lag import with_observed_ends
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Running, Shared
from pipeline.boundaries import lane_time
from pipeline.boundaries.derived import PendingBoundary


def observe_time(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Apply an event to the event time of a running lane."""
    running = lane.running
    if running is None:
        return lane, ()
    observed = _observed(running, shared, event, now)
    return (lane if observed is running else lane.with_running(observed)), ()


def _observed(running: Running, shared: Shared, event: Event, now: Now) -> Running:
    time = running.time
    match event:
        case BoundaryRead(writer, epoch, boundary_ms, positions) if writer in shared.writers:
            boundary = PendingBoundary(boundary_ms, positions)
            time = lane_time.boundary_read(time, writer, epoch, boundary)
            return replace(running, time=time)
        case ActivityRead(writer, epoch, idle) if writer in shared.writers:
            time = lane_time.activity_read(time, writer, epoch, idle=idle, at_ms=now.steady_ms)
            return replace(running, time=time)
        case EndsRead() if shared.ends is not None:
            time = lane_time.ends_read(time, shared.ends_before, shared.ends)
            return with_observed_ends(replace(running, time=time), shared.ends)
        case _:
            return running

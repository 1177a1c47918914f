"""Advances of a lane's event time."""

from dataclasses import replace

from pipeline.agent.effects import SendAdvance
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects, running_if_moved
from pipeline.agent.state import Lane, Shared
from pipeline.boundaries import lane_time


def advance(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Send the running lane an advance, if its event time may move."""
    running = running_if_moved(lane, event)
    if running is None:
        return lane, ()
    time, value = lane_time.advance(running.time, shared.ends, now.steady_ms)
    lane = lane.with_running(replace(running, time=time))
    if value is None:
        return lane, ()
    topic = running.fragment.names.advances
    return lane, (SendAdvance(lane.id, topic, running.incarnation, value),)

"""Forwarding of the promises of a lane's input writers to the lane."""

from dataclasses import replace

from pipeline.agent.effects import NotePromises
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects, running_if_moved
from pipeline.agent.state import Lane, Shared
from pipeline.boundaries import lane_time


def send_promises(lane: Lane, _: Shared, event: Event, __: Now) -> tuple[Lane, Effects]:
    """Send the running lane the promises of its writers, if they have changed."""
    running = running_if_moved(lane, event)
    if running is None:
        return lane, ()
    promised = lane_time.promised(running.time)
    if promised == running.promised:
        return lane, ()
    lane = lane.with_running(replace(running, promised=promised))
    return lane, (NotePromises(lane.id, promised),)

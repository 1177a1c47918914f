"""What a lane is told of the promises of its inputs' writers."""

from dataclasses import replace

from pipeline.agent.effects import NotePromises
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects, running_if_moved
from pipeline.agent.state import Lane, Shared
from pipeline.boundaries import lane_time


def tell_promises(lane: Lane, _: Shared, event: Event, __: Now) -> tuple[Lane, Effects]:
    """Tell the running lane what its writers have promised, if that has changed."""
    running = running_if_moved(lane, event)
    if running is None:
        return lane, ()
    promised = lane_time.promised(running.time)
    if promised == running.promised:
        return lane, ()
    lane = lane.with_running(replace(running, promised=promised))
    return lane, (NotePromises(lane.id, promised),)

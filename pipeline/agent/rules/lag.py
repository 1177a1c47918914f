"""Observation of the ends of a lane's inputs, for its lag."""

from pipeline.agent.events import EndsRead, Event
from pipeline.agent.lag import with_observed_ends
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Shared


def observe_ends(lane: Lane, _: Shared, event: Event, __: Now) -> tuple[Lane, Effects]:
    """Record the ends of a running lane's topics."""
    running = lane.running
    if running is None or not isinstance(event, EndsRead):
        return lane, ()
    return lane.with_running(with_observed_ends(running, event.ends)), ()

"""The desired state of a lane on this node, from the catalog."""

from dataclasses import replace

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.events import CatalogRead, Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import (
    BackingOff,
    Failed,
    Fenced,
    Lane,
    Shared,
    Stopped,
    Tries,
    desired_of,
)
from pipeline.ids import SteadyMillis
from pipeline.lanes.lifecycle import Happening


def assign(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Update the desired state from the catalog; a change resets the failure counts.

    A fenced lane may start again only after the catalog assigns it to this node once more.
    """
    if not isinstance(event, CatalogRead):
        return lane, ()
    before, assigned = lane.desired, shared.assigned.get(lane.id.fragment)
    desired = None if assigned is None else desired_of(assigned)
    lane = replace(lane, assigned=assigned, desired=desired)
    if desired != before:
        lane = replace(lane, tries=Tries(restarts=lane.tries.restarts))
        if isinstance(lane.phase, BackingOff | Failed):
            lane = lane.moved(Happening.RESET, Stopped())
    if isinstance(lane.phase, Fenced) and lane.target is not None:
        wait_ms = back_off_ms(lane.id.fragment, lane.tries.failures)
        lane = lane.moved(Happening.READMITTED, BackingOff(SteadyMillis(now.steady_ms + wait_ms)))
    return lane, ()

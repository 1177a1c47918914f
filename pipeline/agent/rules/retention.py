"""Forwarding of what a lane removes of the topics that it writes."""

from dataclasses import replace

from pipeline.agent.effects import NoteRetention
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Running, Shared


def send_retention(lane: Lane, shared: Shared, _: Event, __: Now) -> tuple[Lane, Effects]:
    """Send the running lane what it removes, from the newest version of its network."""
    running = lane.phase
    if not isinstance(running, Running) or lane.assigned is None:
        return lane, ()
    newest = shared.plans.made.get(lane.assigned.newest_version)
    if newest is None or newest.kept == running.kept:
        return lane, ()
    lane = lane.with_running(replace(running, kept=newest.kept))
    return lane, (NoteRetention(lane.id, newest.kept),)

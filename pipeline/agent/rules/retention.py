"""Forwarding of the retention of dead letters to a lane."""

from dataclasses import replace

from pipeline.agent.effects import NoteRetention
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Running, Shared


def send_retention(lane: Lane, shared: Shared, _: Event, __: Now) -> tuple[Lane, Effects]:
    """Send the running lane the retention of its network's topics, from the newest version."""
    running = lane.phase
    if not isinstance(running, Running) or lane.assigned is None:
        return lane, ()
    newest = shared.plans.made.get(lane.assigned.newest_version)
    if newest is None or newest.retention_ms == running.kept_ms:
        return lane, ()
    lane = lane.with_running(replace(running, kept_ms=newest.retention_ms))
    return lane, (NoteRetention(lane.id, newest.retention_ms),)

"""What a lane is told of the retention of its dead letters."""

from dataclasses import replace

from pipeline.agent.effects import NoteRetention
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Running, Shared


def tell_retention(lane: Lane, shared: Shared, _: Event, __: Now) -> tuple[Lane, Effects]:
    """Tell the running lane how long topics of its network are kept, by the newest version."""
    running = lane.phase
    if not isinstance(running, Running) or lane.assigned is None:
        return lane, ()
    newest = shared.plans.made.get(lane.assigned.newest_version)
    if newest is None or newest.retention_ms == running.kept_ms:
        return lane, ()
    lane = lane.with_running(replace(running, kept_ms=newest.retention_ms))
    return lane, (NoteRetention(lane.id, newest.retention_ms),)

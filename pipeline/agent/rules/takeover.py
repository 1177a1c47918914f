"""Takeovers in the event log: one entry for each, once its lane has written a batch."""

from dataclasses import replace
from typing import Final

from pipeline.agent.effects import LogEvent
from pipeline.agent.events import Event, FragmentTaken
from pipeline.agent.logged import taken_over
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Failed, Fenced, Lane, Shared, Stopped
from pipeline.agent.takeover import Takeover
from pipeline.lanes.events import BatchFinished, LaneStarted

RESULT_MS: Final = 60_000
"""How long after the first batch the entry waits for the first result."""


def follow_takeover(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Take in what an event adds to the takeover of a lane; log it when it is complete.

    A start that fails does not end it: the parts contain the further tries. It ends without an
    entry if the lane ends before it has written a batch.
    """
    if isinstance(event, FragmentTaken) and (event.lane, event.run) == (lane.id, lane.run):
        return replace(lane, takeover=event.takeover), ()
    if lane.takeover is None:
        return lane, ()
    taken = _with_event(lane.takeover, lane, event, now)
    if taken.first_batch_ms is None:
        has_ended = isinstance(lane.phase, Stopped | Fenced | Failed)
        return replace(lane, takeover=None if has_ended else taken), ()
    is_late = now.steady_ms - taken.first_batch_ms >= RESULT_MS
    if taken.first_result_ms is None and lane.running is not None and not is_late:
        return replace(lane, takeover=taken), ()
    entry = taken_over(lane.id.fragment, shared.node, lane.epoch, taken, now.wall_ms)
    return replace(lane, takeover=None), (LogEvent(entry),)


def _with_event(taken: Takeover, lane: Lane, event: Event, now: Now) -> Takeover:
    match event:
        case LaneStarted() if (event.lane, event.run) == (lane.id, lane.run):
            first_ms = event.fenced_ms if taken.fenced_ms is None else taken.fenced_ms
            return replace(taken, fenced_ms=first_ms, last_batch=event.marker.batch)
        case BatchFinished() if (event.lane, event.run) == (lane.id, lane.run):
            return _with_batch(taken, event, now)
        case _:
            return taken


def _with_batch(taken: Takeover, event: BatchFinished, now: Now) -> Takeover:
    """A batch that was written before the takeover, and is executed again, is no new one."""
    if event.marker.batch <= taken.last_batch:
        return taken
    if taken.first_batch_ms is None:
        taken = replace(taken, first_batch_ms=now.steady_ms)
    return replace(taken, first_result_ms=now.steady_ms) if event.rows_out else taken

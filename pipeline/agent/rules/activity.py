"""What the readers of a lane's output are told of its activity."""

from dataclasses import replace

from pipeline.agent.effects import SendActivity
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects, running_if_moved
from pipeline.agent.state import Lane, Running, Shared
from pipeline.boundaries.promise import is_spent
from pipeline.ids import TopicId

IDLE_SAID_MS = 1_000
"""An idle lane says so once a second: its readers believe it for five."""


def tell_activity(lane: Lane, _: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Tell readers that the lane is idle, now and then as long as it is; and once when it ends."""
    running = running_if_moved(lane, event)
    if running is None or lane.marker is None:
        return lane, ()
    idle = running.time.idle and is_spent(running.time.profile.shape, lane.marker)
    said_ms = running.said_idle_at_ms
    if idle and said_ms is not None and now.steady_ms - said_ms < IDLE_SAID_MS:
        return lane, ()
    if not idle and said_ms is None:
        return lane, ()
    said_ms = now.steady_ms if idle else None
    lane = lane.with_running(replace(running, said_idle_at_ms=said_ms))
    return lane, (says_activity(lane, running, idle=idle),)


def says_activity(lane: Lane, running: Running, *, idle: bool) -> SendActivity:
    """The word about a lane's activity, to the readers of its output."""
    topic = running.fragment.output.topic
    return SendActivity(
        lane=lane.id,
        topic=topic,
        topic_id=TopicId(dict(running.desired.topic_ids).get(topic, "")),
        writer=running.fragment.names.writer,
        epoch=lane.epoch,
        idle=idle,
    )

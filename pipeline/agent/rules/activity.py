"""Activity signals of a lane to the readers of its output."""

from dataclasses import replace

from pipeline.agent.effects import SendActivity
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Lane, Running, Shared
from pipeline.boundaries.promise import is_spent
from pipeline.ids import TopicId

IDLE_INTERVAL_MS = 1_000
"""Interval of the idle signal of an idle lane; its readers rely on each for 5 s."""


def send_activity(lane: Lane, _: Shared, __: Event, now: Now) -> tuple[Lane, Effects]:
    """Send `idle` periodically while the lane is idle, and `active` once when that ends."""
    running = lane.phase
    if not isinstance(running, Running) or lane.marker is None:
        return lane, ()
    idle = running.time.idle and is_spent(running.time.profile.shape, lane.marker)
    sent_at_ms = running.idle_sent_at_ms
    if idle and sent_at_ms is not None and now.steady_ms - sent_at_ms < IDLE_INTERVAL_MS:
        return lane, ()
    if not idle and sent_at_ms is None:
        return lane, ()
    sent_at_ms = now.steady_ms if idle else None
    lane = lane.with_running(replace(running, idle_sent_at_ms=sent_at_ms))
    return lane, (activity_signal(lane, running, idle=idle),)


def activity_signal(lane: Lane, running: Running, *, idle: bool) -> SendActivity:
    """The signal of a lane's activity to the readers of its output."""
    topic = running.fragment.output.topic
    return SendActivity(
        lane=lane.id,
        topic=topic,
        topic_id=TopicId(dict(running.desired.topic_ids).get(topic, "")),
        writer=running.fragment.names.writer,
        epoch=lane.epoch,
        idle=idle,
    )

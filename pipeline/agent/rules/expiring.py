"""Schedule of the search for records that retention removes before a lane has used them.

A lane that runs and is not behind needs nothing that could be removed: then nothing is asked.
"""

from dataclasses import replace

from pipeline.agent.effects import FindExpiring
from pipeline.agent.events import Event, ExpiringFound
from pipeline.agent.lag import lags_by_topic
from pipeline.agent.now import Now
from pipeline.agent.rules.rule import Effects
from pipeline.agent.state import Expiring, Lane, Shared
from pipeline.boundaries.ends import ENDS_FRESH_MS, Ends
from pipeline.ids import Millis
from pipeline.lanes.expiring import LogNeeds, needs_of

EVERY_MS = 60_000
BEHIND_LEAST_MS = 60_000
"""A running lane whose oldest unread record may have waited for so long is behind."""


def find_expiring(lane: Lane, shared: Shared, event: Event, now: Now) -> tuple[Lane, Effects]:
    """Request the search once a minute, for a lane that is behind or does not run."""
    if isinstance(event, ExpiringFound) and event.lane == lane.id:
        lane = replace(lane, expiring=replace(lane.expiring, found=event.found))
    examined_ms = lane.expiring.examined_at_ms
    if examined_ms is not None and now.steady_ms - examined_ms < EVERY_MS:
        return lane, ()
    needs = _needs(lane, shared, now)
    if needs is None:
        return lane, ()
    ran_ms = now.steady_ms if lane.running else lane.expiring.ran_at_ms
    found = lane.expiring.found if needs.topics else ()
    examined = replace(lane, expiring=Expiring(now.steady_ms, found, ran_ms))
    return examined, (FindExpiring(lane.id, needs),) if needs.topics else ()


def _needs(lane: Lane, shared: Shared, now: Now) -> LogNeeds | None:
    """What the lane needs and may lose; None: it is not known yet."""
    if lane.marker is None or lane.assigned is None:
        return None
    running = lane.running
    needs = needs_of(lane.marker, lane.assigned.topic_ids, running=running is not None)
    if running is None:
        ran_ms = lane.expiring.ran_at_ms
        return needs if ran_ms is None else needs.not_before(now.wall_at(ran_ms))
    needs = _with_unanswered(needs, shared.ends, now)
    if any(one.unread_since for one in needs.topics.values()):
        return needs
    lags = lags_by_topic(running, now.steady_ms)
    if not lags:
        return None
    behind = any(lag.age_ms >= BEHIND_LEAST_MS for lag in lags.values())
    return needs if behind else LogNeeds({})


def _with_unanswered(needs: LogNeeds, ends: Ends | None, now: Now) -> LogNeeds:
    """Needs with the partitions that do not answer, and ended beyond the position before."""
    if ends is None:
        return needs
    topics = dict(needs.topics)
    for (topic, partition), since_ms in ends.missing.items():
        last, of_topic = ends.earlier.get((topic, partition)), topics.get(topic)
        if last is None or of_topic is None or now.steady_ms - since_ms < ENDS_FRESH_MS:
            continue
        if of_topic.unread.get(partition, last[0]) < last[0]:
            since: dict[int, Millis] = {**of_topic.unread_since, partition: now.wall_at(since_ms)}
            topics[topic] = replace(of_topic, unread_since=since)
    return replace(needs, topics=topics)

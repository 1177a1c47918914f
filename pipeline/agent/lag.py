"""Lag of a lane: its unread records, their age, and whether its batches end. Pure."""

from dataclasses import dataclass, replace

from pipeline.agent.state import ObservedEnds, Running
from pipeline.boundaries.derived import covers
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import finished_in
from pipeline.boundaries.profile import LaneInput
from pipeline.ids import SteadyMillis, TopicName

ENDS_LOG_MAX = 64
"""Observed ends kept per input. At four a second they reach back 16 seconds exactly, and further
with decreasing resolution, which is enough for the age of an old lag."""
STALLED_LEAST_MS = 15_000
"""How long no batch may end, with records unread or one planned, before `status` shows it; the pace
of the fragment comes on top."""


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of a lane at one input.

    `age_ms` is the greatest possible age of its oldest unfinished record: the time since the topic
    last ended at the lane's present position. For a lane that was behind from its start, it is
    the time since its last batch before that: records unread then may have waited since.
    """

    records: int = 0
    age_ms: int = 0


def with_observed_ends(running: Running, ends: Ends) -> Running:
    """A lane with observed ends recorded, until it has processed the records before them."""
    logs, time = dict(running.ends_log), running.time
    for lane_input in time.profile.inputs:
        answer = ends.by_topic.get(lane_input.topic)
        if answer is None:
            continue
        finished = finished_in(time.positions, lane_input)
        log = (*logs.get(lane_input.stream, ()), ObservedEnds(ends.read_at_ms, answer))
        newest_finished = max((i for i, e in enumerate(log) if covers(finished, e.ends)), default=0)
        log = log[newest_finished:]
        logs[lane_input.stream] = log if len(log) <= ENDS_LOG_MAX else (*log[:-1:2], log[-1])
    return replace(running, ends_log=logs)


def lags_by_topic(running: Running, now_ms: SteadyMillis) -> dict[TopicName, Lag]:
    """The lag per topic; empty as long as the end of one of them is unknown."""
    inputs = running.time.profile.inputs
    if any(not running.ends_log.get(lane_input.stream) for lane_input in inputs):
        return {}
    found: dict[TopicName, Lag] = {}
    for lane_input in inputs:
        lag = _lag(running, lane_input, now_ms)
        other = found.get(lane_input.topic, Lag())
        found[lane_input.topic] = Lag(
            records=other.records + lag.records, age_ms=max(other.age_ms, lag.age_ms)
        )
    return found


def _lag(running: Running, lane_input: LaneInput, now_ms: SteadyMillis) -> Lag:
    log = running.ends_log[lane_input.stream]
    finished = finished_in(running.time.positions, lane_input)
    if covers(finished, log[-1].ends):
        return Lag()
    records = sum(max(0, end - finished.get(p, 0)) for p, end in log[-1].ends.items())
    before = min(log[0].at_ms, running.read_at_ms)
    since = max((e.at_ms for e in log if covers(finished, e.ends)), default=before)
    return Lag(records, max(0, now_ms - since))


def stalled_since(
    running: Running, lag_ms: int | None, now_ms: SteadyMillis
) -> SteadyMillis | None:
    """Since when a batch could have ended, and none has; None: not for long, or unknown.

    Records are unread, or a batch is planned: event time may move without any.
    """
    waited_ms = min(lag_ms or 0, now_ms - running.batch_ended_ms)
    planned_ms = running.time.release.moved_at_ms
    if planned_ms is not None and planned_ms > running.batch_ended_ms:
        waited_ms = max(waited_ms, now_ms - planned_ms)
    least_ms = STALLED_LEAST_MS + running.fragment.pace_ms
    return SteadyMillis(now_ms - waited_ms) if waited_ms >= least_ms else None

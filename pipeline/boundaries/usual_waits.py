"""How long results of a lane usually wait for the last partition of their input. Pure.

Partitions are never quite level: producers pause, batches take a second. An availability bound
below such waits makes results tentative without a failure, so they are measured, as the deadline of
a fork measures them: from the moment on at which the fastest partition has passed an event time,
until the batch is planned in which the last one passes it.

Of each minute the longest wait that ended in it is kept. A failure is then one minute among many,
however long it lasts, and so is not usual; what comes in more than one of twenty minutes is. A wait
counts only while the lane is level with its inputs: one that is behind reads each partition at its
own pace.
"""

from dataclasses import dataclass, replace
from typing import Final

from pipeline.boundaries.deadline import Held, Watch
from pipeline.ids import SteadyMillis

WATCHED_MS: Final = 10_000
"""The bound of the watch that measures: moments within a fiftieth of it count as one."""
MINUTE_MS: Final = 60_000
MINUTES_MOST: Final = 1_440
MINUTES_LEAST: Final = 5
"""After fewer of them nothing is said."""
USUAL_PERCENT: Final = 95


@dataclass(frozen=True, slots=True)
class UsualWaits:
    """What was measured of the waits of a lane since it has started, a day at most.

    Args:
        minutes: the number of minutes in which it was measured.
        usual_ms: in 95 of 100 of them no result has waited longer.
        longest_ms: the longest wait of all.
    """

    minutes: int
    usual_ms: int
    longest_ms: int


@dataclass(frozen=True, slots=True)
class Waits:
    """The waits of a lane so far; times are steady.

    Args:
        began_ms: when the present minute began.
        longest_ms: the longest wait that has ended in it; None: none has, and results were never
            free of one.
        since_ms: since when the present wait counts; None: nothing waits.
        minutes: the longest wait of each minute before, the oldest first.
    """

    began_ms: SteadyMillis
    longest_ms: int | None = None
    since_ms: SteadyMillis | None = None
    minutes: tuple[int, ...] = ()


def with_look(waits: Waits, watch: Watch, found: Held | None, until_ms: SteadyMillis) -> Waits:
    """The waits after a lane was looked at, which is due after each of its batches.

    Args:
        waits: before.
        watch: of the lane.
        found: the results that it holds back now.
        until_ms: when its last batch was planned: what that has brought was there then.
    """
    waits = _in_minute(waits, until_ms)
    level_ms = watch.level_ms
    if level_ms is None or watch.wanted is None:
        return replace(waits, since_ms=None)
    before_ms = waits.since_ms
    since_ms = None if found is None else max(found.since_ms, level_ms)
    if since_ms is not None and before_ms in {None, since_ms}:
        return replace(waits, since_ms=since_ms)  # it begins, or goes on
    ended_ms = 0 if before_ms is None else max(0, until_ms - before_ms)
    return replace(waits, since_ms=since_ms, longest_ms=max(ended_ms, waits.longest_ms or 0))


def usual_waits(waits: Waits) -> UsualWaits | None:
    """What is usual; None: too little was measured."""
    count = len(waits.minutes)
    if count < MINUTES_LEAST:
        return None
    in_order = sorted(waits.minutes)
    rank = -(-count * USUAL_PERCENT // 100)
    return UsualWaits(count, in_order[rank - 1], in_order[-1])


def _in_minute(waits: Waits, now_ms: SteadyMillis) -> Waits:
    """The waits in the present minute; one in which no wait has ended is left out."""
    if now_ms - waits.began_ms < MINUTE_MS:
        return waits
    minutes = waits.minutes
    if waits.longest_ms is not None:
        minutes = (*minutes, waits.longest_ms)[-MINUTES_MOST:]
    return replace(waits, began_ms=now_ms, longest_ms=None, minutes=minutes)

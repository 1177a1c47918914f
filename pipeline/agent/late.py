"""Run of batches in which many of the records that a lane reads are late. Pure."""

from dataclasses import dataclass, replace

from pipeline.ids import SteadyMillis
from pipeline.markers.commit_marker import Totals

SHARE_LEAST = 4
"""A batch counts if at least one in this number of its records was late: a fragment with two inputs
may read one of them in time."""
LATE_LEAST_MS = 10_000
"""Minimum duration of a run for it to be shown."""


@dataclass(frozen=True, slots=True)
class LateRun:
    """Batches in a row in which at least a quarter of the records was late; times are steady.

    Args:
        since_ms: end of the first of them.
        until_ms: end of the last of them.
        read: number of records that they have read.
        late: how many of those were late.
    """

    since_ms: SteadyMillis
    until_ms: SteadyMillis
    read: int
    late: int

    @property
    def is_shown(self) -> bool:
        """Whether it is more than a few records at one time."""
        return self.until_ms - self.since_ms >= LATE_LEAST_MS


def with_batch(
    run: LateRun | None, before: Totals, after: Totals, now_ms: SteadyMillis
) -> LateRun | None:
    """The run after a batch; None: there is none. A batch without records changes nothing."""
    read = after.records_in - before.records_in
    if read <= 0:
        return run
    # A record that several paths read is late on each of them.
    late = min(read, after.late_dropped - before.late_dropped)
    if late * SHARE_LEAST < read:
        return None
    if run is None:
        return LateRun(now_ms, now_ms, read, late)
    return replace(run, until_ms=now_ms, read=run.read + read, late=run.late + late)

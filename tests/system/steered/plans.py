"""Random plans of batches over known records: ends, event time, and how each batch goes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from pipeline.boundaries.next_batch import Batch
from pipeline.ids import Millis, Offset
from pipeline.markers.positions import InputPartition, Positions

FAR_MS = 1_000_000
"""Beyond the last record: everything is released."""
NO_RECORDS, NO_EVENT_TIME, AS_FAR_AS_POSSIBLE = 0.15, 0.25, 0.6
"""Probabilities of a batch without records, of one in which event time does not move, and of one in
which it moves as far as the unread records allow."""


class Fate(Enum):
    """What happens to a planned batch."""

    DONE = "done"
    STOPPED = "stopped"
    """It is executed; then the query is stopped, and another one continues."""
    CRASHED = "crashed"
    """It fails after its results were computed, and is executed again."""
    WITHDRAWN = "withdrawn"
    """It fails in the same way, and is planned anew."""


@dataclass(frozen=True, slots=True)
class Step:
    """A planned batch, and what happens to it."""

    batch: Batch
    fate: Fate


def random_steps(
    rng: Random, times: Mapping[InputPartition, Sequence[int]], batches: int, *, stateful: bool
) -> Iterator[Step]:
    """Plans that read everything, and release everything at the end.

    No record is late: the event time of a batch is below that of every record after its ends. So
    rows and partners are read and released in one batch as often as chance has it.

    Args:
        rng: draws.
        times: event times of the records of each partition, in ms.
        batches: how many before the last.
        stateful: whether event time alone can start a batch.
    """
    at = dict.fromkeys(times, Offset(0))
    in_force = 0
    for _ in range(batches):
        fate = rng.choices(list(Fate), (6, 2, 1, 1))[0]
        end = {p: Offset(rng.randint(at[p], len(times[p]))) for p in times}
        if rng.random() < NO_RECORDS:
            end = dict(at)
        event_ms = _event_time(rng, times, end, in_force)
        if end == at and (event_ms is None or not stateful):
            continue
        yield Step(Batch(end, event_ms), fate)
        if fate is not Fate.WITHDRAWN:
            at, in_force = end, event_ms or in_force
    whole = {p: Offset(len(times[p])) for p in times}
    last = max((t for of in times.values() for t in of), default=0) + FAR_MS
    if stateful or at != whole:
        yield Step(Batch(whole, Millis(last)), Fate.DONE)
    if stateful:
        yield Step(Batch(whole, Millis(last + FAR_MS)), Fate.DONE)


def _event_time(
    rng: Random, times: Mapping[InputPartition, Sequence[int]], end: Positions, in_force: int
) -> Millis | None:
    """An event time above the present one and below that of all unread records; often the most."""
    unread = [t for p, of in times.items() for t in of[end[p] :]]
    most = min(unread, default=max((t for of in times.values() for t in of), default=0)) - 1
    if most <= max(in_force, 1) or rng.random() < NO_EVENT_TIME:
        return None
    return Millis(
        most if rng.random() < AS_FAR_AS_POSSIBLE else rng.randint(max(in_force, 1) + 1, most)
    )

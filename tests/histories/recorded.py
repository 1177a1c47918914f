"""The transactions of lanes, reconstructed from a broker's log files. Pure.

A lane ends one transaction in every partition before it begins the next. So its producer's records
in other partitions belong to the commit marker whose transaction ended nearest in time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.ids import Offset
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.planner.plan import Fragment
from tests.faults.history import Place
from tests.faults.segments import Batch, Log, Outcome
from tests.histories.engine import Executed


@dataclass(frozen=True, slots=True)
class Transaction:
    """A committed transaction.

    Args:
        at_ms: time of its end, by the broker's clock.
        marker: place of its commit marker.
        records: places of its other records.
    """

    at_ms: int
    marker: Place
    records: tuple[Place, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """The records of a transaction in one partition."""

    producer: int
    at_ms: int
    places: tuple[Place, ...]


def transactions(markers: Log, others: Iterable[Log]) -> tuple[Transaction, ...]:
    """The committed transactions of one fragment, in order.

    Args:
        markers: its commit-marker topic, whose only partition every transaction writes to.
        others: partitions that it may write to; records of other producers are left out.
    """
    ended = list(_committed(markers))
    times: dict[int, list[tuple[int, int]]] = {}
    for number, part in enumerate(ended):
        times.setdefault(part.producer, []).append((part.at_ms, number))
    records: dict[int, list[Place]] = {}
    for part in (part for log in others for part in _committed(log)):
        if known := times.get(part.producer):
            _, number = min(known, key=lambda one: abs(one[0] - part.at_ms))
            records.setdefault(number, []).extend(part.places)
    return tuple(
        Transaction(part.at_ms, part.places[-1], tuple(records.get(number, ())))
        for number, part in enumerate(ended)
    )


def _committed(log: Log) -> Iterator[_Part]:
    """The records of each committed transaction in a partition, with the time of its end there."""
    waiting: dict[int, list[Batch]] = {}
    for batch in log.batches:
        if not batch.transactional:
            continue
        if batch.outcome is None:
            waiting.setdefault(batch.producer, []).append(batch)
            continue
        written = waiting.pop(batch.producer, [])
        if batch.outcome is Outcome.COMMIT and written:
            offsets = (n for one in written for n in range(one.first, one.last + 1))
            places = tuple(log.place(offset) for offset in offsets)
            yield _Part(batch.producer, batch.newest_ms, places)


def executed(marker: CommitMarker, fragment: Fragment) -> Executed | None:
    """The ranges and watermarks of a marker's batch; None if no batch ran."""
    if marker.judged is None or marker.batch == NO_BATCH:
        return None
    reads: dict[tuple[str, str], tuple[str, Mapping[int, tuple[int, int]]]] = {}
    for source in marker.sources:
        topic, topic_id = source.topics[0]
        starts = _of(marker.start, source.name, topic)
        ends = _of(marker.end, source.name, topic)
        ranges = {partition: (starts.get(partition, 0), end) for partition, end in ends.items()}
        reads[source.name, topic] = topic_id, ranges
    late_ms, eviction_ms = marker.late_ms or 0, marker.eviction_ms or 0
    return Executed(marker.batch, fragment, reads, late_ms, eviction_ms, rebuild=False)


def _of(positions: Mapping[InputPartition, Offset], name: str, topic: str) -> dict[int, int]:
    """The positions of one source in one topic, by partition."""
    found = positions.items()
    return {at.partition: int(n) for at, n in found if at.input == name and at.topic == topic}

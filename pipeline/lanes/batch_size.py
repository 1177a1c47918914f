"""Batch size limit, computed from sampled record sizes. Pure.

Memory and a transaction must hold the bytes of a batch, but Spark limits a batch by offsets alone,
before it has read a record. So records are sampled at a few offsets of each range to be read, and
the largest mean size decides for all of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pipeline.ids import Offset, TopicName
from pipeline.markers.positions import InputPartition, Positions

RECORDS_PER_BATCH: Final = 400_000
"""Upper limit: small records cost memory in addition to their bytes."""
JOINED_PER_BATCH: Final = 40_000
"""Upper limit for joins. A join scans its state when event time moves, and a full join compares
each row with all rows of its key in the batch and the state: rows that are read far ahead of event
time make both slower."""
BYTES_PER_BATCH: Final = 48_000_000
"""Maximum bytes of encoded records. Several lanes share a heap, and a batch is in memory more than
once while it is converted to records or dead letters."""
SAMPLES_MAX: Final = 4
"""Samples per partition, evenly from the next record on."""
OFFSETS_PER_SAMPLE: Final = 5_000
"""Minimum number of offsets per sample: sampling delays the lane."""
_SLACK: Final = 2
"""Factor by which an already planned batch may exceed the limit: it fitted when it was planned."""

Ends = Mapping[TopicName, Mapping[int, Offset]]


def sample_offsets(start: Positions, ends: Ends) -> Iterator[dict[InputPartition, Offset]]:
    """Offsets to sample, one per partition at a time; none in partitions that are read to the end.

    Args:
        start: the next offset to read of every data partition.
        ends: present ends of their topics.
    """
    ranges = {
        at: (offset, end)
        for at, offset in start.items()
        if (end := ends.get(at.topic, {}).get(at.partition, offset)) > offset
    }
    longest = max((end - offset for offset, end in ranges.values()), default=0)
    count = min(SAMPLES_MAX, -(-longest // OFFSETS_PER_SAMPLE))
    for number in range(count):
        yield {
            at: Offset(offset + (end - offset) * number // count)
            for at, (offset, end) in ranges.items()
        }


def records_at_once(sizes: Iterable[float]) -> int:
    """Maximum number of records in a batch, given mean record sizes in bytes of several samples."""
    largest = max(sizes, default=0.0)
    fits = int(BYTES_PER_BATCH / largest) if largest else RECORDS_PER_BATCH
    return min(max(fits, 1), RECORDS_PER_BATCH)


def too_many(start: Positions, end: Positions, most: int) -> bool:
    """Whether an already planned batch reads far more records than the limit."""
    return sum(max(0, offset - start.get(at, offset)) for at, offset in end.items()) > _SLACK * most

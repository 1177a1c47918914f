"""How many records a batch may read: memory and a transaction have to hold their bytes. Pure.

Spark bounds a batch by offsets alone, before it has seen a record. So records are looked at in a
few places of what lies ahead, and the largest ones found there decide for all of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pipeline.ids import Offset, TopicName
from pipeline.markers.positions import InputPartition, Positions

RECORDS_PER_BATCH: Final = 400_000
"""Small records cost memory beside their bytes."""
JOINED_PER_BATCH: Final = 40_000
"""A join walks through its state when event time moves, and a full one compares each row with all
of its key that the batch and the state hold: rows that are read far ahead of event time make both
longer."""
BYTES_PER_BATCH: Final = 48_000_000
"""Of records as they came. Several lanes share a heap, and a batch is there more than once while
it is turned into records or dead letters."""
PLACES: Final = 4
"""In so many places of each partition, evenly from the next record on."""
PLACE_EVERY: Final = 5_000
"""But not in more than one for so many offsets: looking takes time in which a lane stands still."""
_BORNE: Final = 2
"""A batch that was planned before may be so many times too large: it was meant to fit."""

Ends = Mapping[TopicName, Mapping[int, Offset]]


def places(start: Positions, ends: Ends) -> Iterator[dict[InputPartition, Offset]]:
    """Where to look, one place in each partition at a time; none where nothing lies ahead.

    Args:
        start: the next offset to read of every partition that holds records to come.
        ends: where their topics end now.
    """
    ahead = {
        at: (offset, end)
        for at, offset in start.items()
        if (end := ends.get(at.topic, {}).get(at.partition, offset)) > offset
    }
    longest = max((end - offset for offset, end in ahead.values()), default=0)
    count = min(PLACES, -(-longest // PLACE_EVERY))
    for number in range(count):
        yield {
            at: Offset(offset + (end - offset) * number // count)
            for at, (offset, end) in ahead.items()
        }


def records_at_once(sizes: Iterable[float]) -> int:
    """How many records a batch may read, given what one has in bytes in several places."""
    largest = max(sizes, default=0.0)
    fits = int(BYTES_PER_BATCH / largest) if largest else RECORDS_PER_BATCH
    return min(max(fits, 1), RECORDS_PER_BATCH)


def too_many(start: Positions, end: Positions, most: int) -> bool:
    """Whether a batch that was planned before reads far more than one may read now."""
    return sum(max(0, offset - start.get(at, offset)) for at, offset in end.items()) > _BORNE * most

"""Pieces of a rebuild: planned batches of bounded size, and the watermark in force in each. Pure.

Pieces are equal parts of each partition, not the batches in which the records were read first: a
record may be in an earlier piece than one that was read before it. So the watermarks of those
batches would make records late that were accepted. A watermark is exact in a piece if it is at most
that of the last marker, and every record of a later piece is above it: then no record is late, and
everything that the piece drops from the state, the last watermark would drop as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.boundaries.promise import watermark_for
from pipeline.boundaries.release import LEAST_WATERMARK_MS
from pipeline.ids import BatchId, Millis, Offset
from pipeline.markers.positions import Positions
from pipeline.network.boxes.shape import Joined, Sessions, Shape


@dataclass(frozen=True, slots=True)
class Pieces:
    """The offsets between two positions, in equal parts of each partition.

    Args:
        begin: first offsets to read.
        end: where the last piece ends.
        number: how many there are, at least one; each reads an offset, if there is any to read.
    """

    begin: Positions
    end: Positions
    number: int

    def end_of(self, piece: int) -> Positions:
        """Where a piece ends; the first one is 0, and piece -1 ends where it begins."""
        done = piece + 1
        if done == self.number:
            return self.end
        return {
            at: Offset(begin + max(0, self.end[at] - begin) * done // self.number)
            for at, begin in self.begin.items()
        }

    def offsets(self, done: int) -> int:
        """Number of offsets in the first pieces."""
        end = self.end_of(done - 1)
        return sum(max(0, end[at] - begin) for at, begin in self.begin.items())


@dataclass(frozen=True, slots=True)
class Piece:
    """A planned batch of a rebuild.

    Args:
        batch: its number.
        end: where it ends, of every partition.
        watermark_ms: in force in it; None: none.
    """

    batch: BatchId
    end: Positions
    watermark_ms: Millis | None


@dataclass(frozen=True, slots=True)
class RebuildPlan:
    """The planned batches of a rebuild.

    Args:
        pieces: what they read.
        watermarks: what is in force in each.
        first: the number of the first batch.
    """

    pieces: Pieces
    watermarks: tuple[Millis | None, ...]
    first: BatchId

    def piece(self, number: int) -> Piece:
        """The batch of a piece; the first one is 0."""
        batch = BatchId(self.first + number)
        return Piece(batch, self.pieces.end_of(number), self.watermarks[number])

    @property
    def last(self) -> BatchId:
        """The number of the last batch."""
        return BatchId(self.first + self.pieces.number - 1)


def divided(begin: Positions, end: Positions, most: int) -> Pieces:
    """The pieces of at most `most` offsets, and one more for each partition, since parts are whole.

    A partition that begins beyond its end counts as empty.
    """
    lengths = [max(0, end[at] - offset) for at, offset in begin.items()]
    number = min(-(-sum(lengths) // most), max(lengths, default=0))
    return Pieces(begin, end, max(1, number))


def drops_meanwhile(shape: Shape, *, chosen: bool) -> bool:
    """Whether a rebuild reads much that the state does not contain in the end.

    Then it is worth reading the event times first, so that pieces drop it meanwhile. The state of
    windows, joins and deduplications contains about what a rebuild has to read; a chosen one reads
    whatever there is.
    """
    match shape:
        case Sessions():  # from a multiple of the longest session on, whose sessions have ended
            return True
        case Joined(passing=passing) if passing:  # all versions of each key, of which one is valid
            return True
        case _:
            return chosen


def watermarks(
    shape: Shape,
    oldest: Sequence[Millis | None],
    before_ms: Millis | None,
    last_ms: Millis | None,
) -> tuple[Millis | None, ...]:
    """The watermark in force in each piece; None: none yet.

    Args:
        shape: what the lane computes.
        oldest: per piece the least event time of the records that count, or any below it; None:
            none counts.
        before_ms: the watermark in force before the first piece.
        last_ms: that of the last marker, in force in the last piece.
    """
    found, later_ms = list[Millis | None](), None
    for oldest_ms in reversed(oldest):
        found.append(_below(shape, later_ms, before_ms, last_ms))
        later_ms = min((ms for ms in (oldest_ms, later_ms) if ms is not None), default=None)
    found[0] = last_ms
    return tuple(reversed(found))


def _below(
    shape: Shape, later_ms: Millis | None, before_ms: Millis | None, last_ms: Millis | None
) -> Millis | None:
    """The largest watermark that is below all records which are still to be read."""
    if last_ms is None or later_ms is None:
        return last_ms
    found = min(last_ms, watermark_for(shape, Millis(later_ms - 1)))
    if before_ms is not None:
        return max(before_ms, found)
    return found if found >= LEAST_WATERMARK_MS else None

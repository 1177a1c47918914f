"""Dead-letter offsets that a rebuild needs: until then, retention must not remove dead letters.

A rebuild leaves out the records that dead letters name. Of each run of batches that wrote dead
letters we remember a span: where the dead-letter topic ended before them, and where the inputs were
read to after them. A span is over once the needed positions cover those ends, since a rebuild then
reads none of the records that its dead letters can name. There are at most `SPANS_MAX` spans; two
neighbours become one with the older offsets and the newer ends, so more is kept than is needed,
never less.

The dead-letter topic may be deleted and made again while the lane runs. Offsets count letters of
one topic, so a span knows which, and what is needed is told of the oldest span's topic: as long as
that one is open, letters are needed that are gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.ids import Offset
from pipeline.lanes.needed import bounded
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions

SPANS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class LetterSpan:
    """A run of batches that wrote dead letters.

    Args:
        topic_id: Kafka's id of the dead-letter topic.
        before: partition of that topic → an offset at or before their first one.
        ends: the positions after the last of these batches.
    """

    topic_id: str
    before: Mapping[int, Offset]
    ends: Positions


def resume_letters(marker: CommitMarker) -> tuple[LetterSpan, ...]:
    """The spans of a lane that continues from a marker: one, over all that was needed then."""
    if not marker.letters_from:
        return ()
    return (LetterSpan(marker.letters, marker.letters_from, marker.end),)


def after_letters(
    spans: tuple[LetterSpan, ...], written: LetterSpan | None, needed: Positions
) -> tuple[LetterSpan, ...]:
    """The spans after a batch, oldest first.

    Args:
        spans: those before it.
        written: the batch's own; None if it wrote no dead letter.
        needed: the oldest positions still needed after it.
    """
    found = spans if written is None else (*spans, written)
    return bounded(
        tuple(span for span in found if not _covered(span.ends, needed)), SPANS_MAX, _joined
    )


def letters_from(spans: Sequence[LetterSpan]) -> dict[int, Offset]:
    """Per partition of the oldest span's topic the offset from which dead letters are needed.

    Of a partition that is missing here no dead letter is needed.
    """
    found: dict[int, Offset] = {}
    for span in spans:
        if span.topic_id == spans[0].topic_id:
            for partition, offset in span.before.items():
                found.setdefault(partition, offset)
    return found


def kept_from(marker: CommitMarker, topic_id: str, ends: Mapping[int, Offset]) -> dict[int, Offset]:
    """Per partition the offset below which no dead letter is needed, as a marker says.

    Args:
        marker: the last one; read when all that lies below `ends` was decided, and later.
        topic_id: of the dead-letter topic as it is now. If the marker counts offsets of another
            topic, everything is kept.
        ends: the committed ends of the dead-letter topic.
    """
    if marker.letters_from and marker.letters != topic_id:
        return dict.fromkeys(ends, Offset(0))
    return {p: min(end, marker.letters_from.get(p, end)) for p, end in ends.items()}


def first_gone(
    needed_from: Mapping[int, Offset], starts: Mapping[int, Offset]
) -> tuple[int, Offset, Offset] | None:
    """The first partition that no longer holds needed dead letters; None: all are there.

    Args:
        needed_from: as in a marker.
        starts: the oldest offset of each partition.

    Returns:
        The partition, the offset from which dead letters are needed, and its oldest offset.
    """
    for partition, offset in sorted(needed_from.items()):
        if starts.get(partition, offset) > offset:
            return partition, offset, starts[partition]
    return None


def _covered(ends: Positions, needed: Positions) -> bool:
    """Whether everything below the ends was read and is not needed any more."""
    return all(needed.get(at, end) >= end for at, end in ends.items())


def _joined(older: LetterSpan, newer: LetterSpan) -> LetterSpan:
    same = newer.topic_id == older.topic_id
    before = {**newer.before, **older.before} if same else older.before
    return LetterSpan(older.topic_id, before, newer.ends)

"""Oldest dead-letter offsets that a rebuild needs; retention must keep dead letters from there on.

A rebuild leaves out the records that dead letters name. For each run of batches with dead letters
there is a span: the end of the dead-letter topic before them, and the input positions after them. A
span is closed once the needed positions cover those positions, since a rebuild then reads none of
the records that its dead letters can name. There are at most `SPANS_MAX` spans; two neighbours are
merged into one with the older offsets and the newer positions, so more is kept than is needed,
never less.

The dead-letter topic may be deleted and created again while the lane runs. Offsets belong to one
topic, so a span contains the topic's id, and the needed offsets are those in the oldest span's
topic: while that span is open, deleted dead letters are needed.
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
class DeadLetterSpan:
    """A run of batches with dead letters.

    Args:
        topic_id: Kafka's id of the dead-letter topic.
        before: partition of that topic → an offset at or before their first one.
        ends: the positions after the last of these batches.
    """

    topic_id: str
    before: Mapping[int, Offset]
    ends: Positions


def resume_dead_letters(marker: CommitMarker) -> tuple[DeadLetterSpan, ...]:
    """The spans of a lane that continues from a marker: one, over all that are needed."""
    if not marker.letters_from:
        return ()
    return (DeadLetterSpan(marker.letters, marker.letters_from, marker.end),)


def after_dead_letters(
    spans: tuple[DeadLetterSpan, ...], written: DeadLetterSpan | None, needed: Positions
) -> tuple[DeadLetterSpan, ...]:
    """Compute the spans after a batch, oldest first.

    Args:
        spans: those before it.
        written: the span of the batch; None if it wrote no dead letter.
        needed: the oldest positions still needed after it.
    """
    found = spans if written is None else (*spans, written)
    return bounded(
        tuple(span for span in found if not _covered(span.ends, needed)), SPANS_MAX, _joined
    )


def letters_from(spans: Sequence[DeadLetterSpan]) -> dict[int, Offset]:
    """Offset per partition of the oldest span's topic from which on dead letters are needed.

    No dead letters of missing partitions are needed.
    """
    found: dict[int, Offset] = {}
    for span in spans:
        if span.topic_id == spans[0].topic_id:
            for partition, offset in span.before.items():
                found.setdefault(partition, offset)
    return found


def kept_from(marker: CommitMarker, topic_id: str, ends: Mapping[int, Offset]) -> dict[int, Offset]:
    """Offset per partition below which no dead letter is needed, by a marker.

    Args:
        marker: the last one; read after all batches with dead letters below `ends` were committed.
        topic_id: of the present dead-letter topic. If the marker's offsets are of another topic,
            everything is kept.
        ends: the committed ends of the dead-letter topic.
    """
    if marker.letters_from and marker.letters != topic_id:
        return dict.fromkeys(ends, Offset(0))
    return {p: min(end, marker.letters_from.get(p, end)) for p, end in ends.items()}


def first_gone(
    needed_from: Mapping[int, Offset], starts: Mapping[int, Offset]
) -> tuple[int, Offset, Offset] | None:
    """The first partition that has lost needed dead letters; None: all are there.

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
    """Whether everything below the ends was read and is no longer needed."""
    return all(needed.get(at, end) >= end for at, end in ends.items())


def _joined(older: DeadLetterSpan, newer: DeadLetterSpan) -> DeadLetterSpan:
    same = newer.topic_id == older.topic_id
    before = {**newer.before, **older.before} if same else older.before
    return DeadLetterSpan(older.topic_id, before, newer.ends)

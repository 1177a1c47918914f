"""Oldest positions that a lane still needs, for retention and for a rebuild from the log.

Per input partition there is a list of spans: the start of a run of finished batches, and the
largest event time in it. A span is closed once all of its event times are below those that the
state may contain. The needed position is the start of the first open span. It is never too high; it
may be too low by a part of a span.

Spans rise in event time along the log: a batch whose newest row is no newer than that of an earlier
span cannot be needed longer, so it joins that span. Only above `SPANS_MAX` spans are two neighbours
merged, which keeps the older start and the newer time.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pipeline.boundaries.promise import kept_from
from pipeline.ids import Millis, Offset
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Shape, Stateless

S = TypeVar("S")

SPANS_MAX = 256
"""Spans per partition: with batches of 100 ms, half a minute of state to the batch, and longer
state with decreasing resolution."""


@dataclass(frozen=True, slots=True)
class Span:
    """A range of read records from `start` on; `newest_ms` None: its event times are unknown."""

    start: Offset
    newest_ms: Millis | None


@dataclass(frozen=True, slots=True)
class NeededLog:
    """The open spans of each input partition, oldest first."""

    spans: Mapping[InputPartition, tuple[Span, ...]]


@dataclass(frozen=True, slots=True)
class BatchRead:
    """Positions, event times and watermark of a finished batch.

    Args:
        start: the positions before it.
        end: the positions after it.
        newest: the largest event time of its rows, for every input partition that had any; whether
            late rows are included does not matter.
        eviction_ms: the watermark that it closed windows and dropped state with.
    """

    start: Positions
    end: Positions
    newest: Mapping[InputPartition, Millis]
    eviction_ms: Millis | None


def resume(marker: CommitMarker) -> NeededLog:
    """The log of a lane that continues from a marker.

    One span per partition, from the needed position on. Its newest event time is the marker's
    progress. Without progress of a partition, its position stays unchanged for the lane's whole
    life: so a marker should contain the progress of derived inputs too.
    """
    return NeededLog(
        {
            partition: (Span(start, marker.progress.get(partition)),)
            for partition, start in marker.needed.items()
            if start < marker.end.get(partition, start)
        }
    )


def after_batch(shape: Shape, log: NeededLog, batch: BatchRead) -> tuple[NeededLog, Positions]:
    """The log after a batch, and the oldest positions still needed."""
    if isinstance(shape, Stateless):
        return NeededLog({}), batch.end
    spans = dict(log.spans)
    for partition, newest_ms in batch.newest.items():
        before = spans.get(partition, ())
        last = before[-1] if before else None
        if last is None or (last.newest_ms is not None and last.newest_ms < newest_ms):
            spans[partition] = bounded(
                (*before, Span(batch.start[partition], newest_ms)), SPANS_MAX, _joined
            )
    spans = {
        partition: left
        for partition, found in spans.items()
        if (left := _open(found, kept_from(shape, batch.eviction_ms, partition.input)))
    }
    return NeededLog(spans), {
        partition: spans[partition][0].start if partition in spans else offset
        for partition, offset in batch.end.items()
    }


def _open(spans: tuple[Span, ...], kept_from_ms: Millis | None) -> tuple[Span, ...]:
    """The open spans; while no watermark is in force, all of them."""
    if kept_from_ms is None:
        return spans
    return tuple(s for s in spans if s.newest_ms is None or s.newest_ms >= kept_from_ms)


def _joined(older: Span, newer: Span) -> Span:
    return Span(older.start, newer.newest_ms)


def bounded(spans: tuple[S, ...], most: int, join: Callable[[S, S], S]) -> tuple[S, ...]:
    """Merge neighbours of the older half, two by two, when there are more than `most`."""
    if len(spans) <= most:
        return spans
    half = len(spans) // 4 * 2
    joined = (join(spans[i], spans[i + 1]) for i in range(0, half, 2))
    return (*joined, *spans[half:])

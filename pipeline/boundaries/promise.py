"""Promise of a lane about its output, and translation of event time to watermarks.

The watermark in force in batch N closes windows and drops state in N; rows of N are late by the
watermark of N-1. So the watermark that closes in batch N is the one by which rows of N+1 are late,
and its boundary can be promised in the transaction of batch N.
"""

from pipeline.boundaries.sessions import oldest_record
from pipeline.boundaries.windows import final_end, next_end
from pipeline.ids import Millis, StreamName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed, reach_ms


def watermark_for(shape: Shape, event_ms: Millis) -> Millis:
    """The watermark with which event time up to `event_ms` is in force."""
    return Millis(event_ms + shape.watermark_lead_ms)


def in_force(shape: Shape, marker: CommitMarker) -> Millis | None:
    """The event time in force by a marker; None before any.

    Spark starts with a watermark of 0, which means none.
    """
    if isinstance(shape, Stateless):
        return marker.boundary_ms
    if marker.eviction_ms is None or marker.eviction_ms <= 0:
        return None
    return Millis(marker.eviction_ms - shape.watermark_lead_ms)


def promise(
    shape: Shape,
    *,
    eviction_ms: Millis | None,
    passed_ms: Millis | None,
    previous_ms: Millis | None,
) -> Millis | None:
    """Compute the boundary of a lane's output after a batch; None before any.

    Args:
        shape: what the lane computes.
        eviction_ms: the watermark that the batch closed windows and dropped state with.
        passed_ms: the event time that came into force in the batch (only stateless lanes use it).
        previous_ms: the previous promise; a promise never decreases.
    """
    found: Millis | None
    closed = _above_zero(eviction_ms)
    if isinstance(shape, Stateless):
        found = passed_ms
    elif closed is None:
        found = None
    elif isinstance(shape, Windowed):
        found = Millis(next_end(shape.window, closed) - 1)
    else:
        found = Millis(closed - shape.behind_ms)
    if found is None or previous_ms is None:
        return previous_ms if found is None else found
    return max(found, previous_ms)


def is_spent(shape: Shape, marker: CommitMarker) -> bool:
    """Whether the lane's state can emit nothing more without a new record.

    So once the boundary is at or above the event time of every result that may contain the newest.
    """
    last_ms = last_result_ms(shape, marker)
    if last_ms is None:
        return True
    return marker.boundary_ms is not None and marker.boundary_ms >= last_ms


def last_result_ms(shape: Shape, marker: CommitMarker) -> Millis | None:
    """Upper bound of the event times of results that may contain the newest record; None: none."""
    newest = max(marker.progress.values(), default=None)
    if newest is None:
        return None
    match shape:
        case Windowed(window):
            return final_end(window, newest)
        case Sessions(window):
            return Millis(newest + window.gap_ms)
        case Joined():
            return newest
        case Stateless():
            return None


def kept_from(shape: Shape, eviction_ms: Millis | None, of: StreamName) -> Millis | None:
    """Least event time of an input's rows that a lane's state may still contain.

    None: no watermark was in force yet, so the state may contain every row. Not for stateless
    lanes, which have no state.
    """
    closed = _above_zero(eviction_ms)
    if closed is None:
        return None
    match shape:
        case Windowed(window):
            return Millis(next_end(window, closed) - window.size_ms)
        case Sessions(window):
            return oldest_record(window, closed)
        case Joined():
            return Millis(closed - reach_ms(shape, of))
        case Stateless():
            return None


def _above_zero(watermark: Millis | None) -> Millis | None:
    return None if watermark is None or watermark <= 0 else watermark

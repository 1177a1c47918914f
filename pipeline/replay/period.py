"""Period of a replay: event times of the results to compute and of their input records. Pure.

A replay is requested in event time, because that identifies a result: the end of its window, or
the later row of its pair. The input to read follows from it. A result of a window or a join is
computed only up to the fragment's boundary, so the last results of a replay are as complete as the
first ones.
"""

from dataclasses import dataclass

from pipeline.boundaries.sessions import last_cut, oldest_record
from pipeline.boundaries.windows import final_end, last_end, next_end
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.planner.instants import instant


@dataclass(frozen=True, slots=True)
class Interval:
    """Interval of event time, `until_ms` excluded; None: up to the last complete result."""

    from_ms: Millis
    until_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open intervals of event time, of results and of their inputs; an end of None: unlimited.

    Args:
        results_from_ms: minimum event time of the results.
        results_until_ms: exclusive upper bound of their event times.
        input_from_ms: minimum event time of the input records that these results can depend on.
        input_until_ms: exclusive upper bound of the event times of these records.
    """

    results_from_ms: Millis
    results_until_ms: Millis | None
    input_from_ms: Millis
    input_until_ms: Millis | None

    def has_result(self, at_ms: Millis) -> bool:
        """Whether a result with this event time belongs to the period."""
        return _within(at_ms, self.results_from_ms, self.results_until_ms)

    def has_input(self, at_ms: Millis) -> bool:
        """Whether a result of the period can depend on an input record with this event time."""
        return _within(at_ms, self.input_from_ms, self.input_until_ms)


def period(
    shape: Shape, when: Interval, boundary_ms: Millis | None, place: str, *, published: bool = False
) -> Period:
    """The results to compute for an interval, and the input records that they depend on.

    Args:
        shape: of the fragment.
        when: the requested interval; every window that overlaps it is computed, otherwise the
            results within it. For published sessions it is extended to cuts between sessions.
        boundary_ms: the fragment's boundary; its results up to it are complete.
        place: the fragment, for errors.
        published: whether the results are compared with the published ones; then all of these have
            to be complete, those of a fragment without state too.

    Raises:
        RefusedError: the requested interval is empty, or not all of its results are complete.
    """
    if when.until_ms is not None and when.until_ms <= when.from_ms:
        raise RefusedError("the end of the replay does not lie after its beginning", place=place)
    match shape:
        case Stateless():
            until_ms = when.until_ms
            if published:
                until_ms = _complete(when.from_ms, until_ms, boundary_ms, place)
            return Period(when.from_ms, until_ms, when.from_ms, until_ms)
        case Windowed(window):
            first = next_end(window, when.from_ms)
            last = None if when.until_ms is None else final_end(window, Millis(when.until_ms - 1))
            until = _complete(first, None if last is None else Millis(last + 1), boundary_ms, place)
            final = last_end(window, Millis(until - 1))
            return Period(first, until, Millis(first - window.size_ms), final)
        case Sessions(window):
            if published:
                when, boundary_ms = _extend_to_cuts(window, when, boundary_ms)
            until = _complete(when.from_ms, when.until_ms, boundary_ms, place)
            return Period(when.from_ms, until, oldest_record(window, when.from_ms), until)
        case Joined(span_ms, behind_ms):
            until = _complete(when.from_ms, when.until_ms, boundary_ms, place)
            last = Millis(until + behind_ms)  # the last row without a partner may have one up to it
            return Period(when.from_ms, until, Millis(when.from_ms - span_ms), last)


def _within(at_ms: Millis, from_ms: Millis, until_ms: Millis | None) -> bool:
    return from_ms <= at_ms and (until_ms is None or at_ms < until_ms)


def _extend_to_cuts(
    window: SessionWindow, when: Interval, boundary_ms: Millis | None
) -> tuple[Interval, Millis | None]:
    """The requested interval and the boundary, at cuts across which no two sessions can merge.

    A late record that counts now may extend a session or merge two; their published results must
    then be removed, so the interval must contain all of them.
    """
    until_ms = when.until_ms
    if until_ms is not None:
        until_ms = Millis(last_cut(window, Millis(until_ms - 1)) + window.longest_ms)
    if boundary_ms is not None:
        boundary_ms = Millis(last_cut(window, Millis(boundary_ms + 1)) - 1)
    return Interval(last_cut(window, when.from_ms), until_ms), boundary_ms


def _complete(
    first: Millis, until: Millis | None, boundary_ms: Millis | None, place: str
) -> Millis:
    """The exclusive end of the results: the requested one, else just after the boundary.

    Args:
        first: the minimum event time of the results.
        until: the requested end, if any.
        boundary_ms: the fragment's boundary; None: it has published none.
        place: the fragment, for errors.
    """
    if boundary_ms is None or first > boundary_ms:
        so_far, earlier = "none", ""
        if boundary_ms is not None:
            so_far, earlier = f"those up to {instant(boundary_ms)}", "begin earlier, or "
        raise RefusedError(
            f"no result from {instant(first)} on is complete yet: the fragment has finished "
            f"{so_far}",
            place=place,
            hint=f"{earlier}wait until event time has passed it.",
        )
    if until is None:
        return Millis(boundary_ms + 1)
    if until > boundary_ms + 1:
        raise RefusedError(
            f"results up to {instant(Millis(until - 1))} are asked for, the fragment has finished "
            f"those up to {instant(boundary_ms)}",
            place=place,
            hint="leave `--to` out to replay what is complete, or wait.",
        )
    return until

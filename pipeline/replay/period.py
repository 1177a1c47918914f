"""Which results a replay computes, and the event times of the input that they are made of. Pure.

Everything is asked for in event time, since that is what names a result: the window that it is of,
or the later row of its pair. What has to be read follows from it. A result of a window or of a join
is computed only if the fragment has promised that nothing more belongs to it; so the last results
of a replay are as complete as the first ones.
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
class Asked:
    """What was asked for: event times from, and before; `until_ms` None: as far as there is."""

    from_ms: Millis
    until_ms: Millis | None


@dataclass(frozen=True, slots=True)
class Period:
    """Half-open intervals of event time; an end of None is no limit.

    Args:
        results_from_ms: the least event time of a result.
        results_until_ms: results lie before this.
        input_from_ms: the least event time of a record that these results can be made of.
        input_until_ms: these records lie before this.
    """

    results_from_ms: Millis
    results_until_ms: Millis | None
    input_from_ms: Millis
    input_until_ms: Millis | None

    def has_result(self, at_ms: Millis) -> bool:
        """Whether a result of this event time is asked for."""
        return _within(at_ms, self.results_from_ms, self.results_until_ms)

    def has_input(self, at_ms: Millis) -> bool:
        """Whether a record of this event time can be part of one."""
        return _within(at_ms, self.input_from_ms, self.input_until_ms)


def period(
    shape: Shape, asked: Asked, boundary_ms: Millis | None, place: str, *, published: bool = False
) -> Period:
    """What to compute and what that is made of.

    Args:
        shape: the fragment's.
        asked: of windows every one that reaches into it, of all others the results that lie in it.
            Where published sessions are compared, it is widened to where all of them are cut.
        boundary_ms: what the fragment has promised: its results up to there are complete.
        place: names the fragment, for errors.
        published: whether all of the fragment's own results in it have to be there, without state
            too: what is computed is compared with them.

    Raises:
        RefusedError: nothing lies in it, or not all of it is complete yet.
    """
    if asked.until_ms is not None and asked.until_ms <= asked.from_ms:
        raise RefusedError("the end of the replay does not lie after its beginning", place=place)
    match shape:
        case Stateless():
            until_ms = asked.until_ms
            if published:
                until_ms = _complete(asked.from_ms, until_ms, boundary_ms, place)
            return Period(asked.from_ms, until_ms, asked.from_ms, until_ms)
        case Windowed(window):
            first = next_end(window, asked.from_ms)
            last = None if asked.until_ms is None else final_end(window, Millis(asked.until_ms - 1))
            until = _complete(first, None if last is None else Millis(last + 1), boundary_ms, place)
            final = last_end(window, Millis(until - 1))
            return Period(first, until, Millis(first - window.size_ms), final)
        case Sessions(window):
            if published:
                asked, boundary_ms = _between_cuts(window, asked, boundary_ms)
            until = _complete(asked.from_ms, asked.until_ms, boundary_ms, place)
            return Period(asked.from_ms, until, oldest_record(window, asked.from_ms), until)
        case Joined(span_ms, behind_ms):
            until = _complete(asked.from_ms, asked.until_ms, boundary_ms, place)
            last = Millis(until + behind_ms)  # where the last row without a partner may have one
            return Period(asked.from_ms, until, Millis(asked.from_ms - span_ms), last)


def _within(at_ms: Millis, from_ms: Millis, until_ms: Millis | None) -> bool:
    return from_ms <= at_ms and (until_ms is None or at_ms < until_ms)


def _between_cuts(
    window: SessionWindow, asked: Asked, boundary_ms: Millis | None
) -> tuple[Asked, Millis | None]:
    """What was asked for, and what is complete, where no session of it can be joined to another.

    A record that was late may prolong a session, or join two: then other ones have to go, too.
    """
    until_ms = asked.until_ms
    if until_ms is not None:
        until_ms = Millis(last_cut(window, Millis(until_ms - 1)) + window.longest_ms)
    if boundary_ms is not None:
        boundary_ms = Millis(last_cut(window, Millis(boundary_ms + 1)) - 1)
    return Asked(last_cut(window, asked.from_ms), until_ms), boundary_ms


def _complete(
    first: Millis, until: Millis | None, boundary_ms: Millis | None, place: str
) -> Millis:
    """The end of the results: the one that was asked for, or what is promised.

    Args:
        first: the least event time of a result.
        until: the end that was asked for; None: none was.
        boundary_ms: the promise.
        place: names the fragment.
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

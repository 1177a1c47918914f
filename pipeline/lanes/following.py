"""Which batches of its owner a follower repeats next. Pure.

A follower executes the batches of a stable lane on another node with the ends and the watermark of
their commit markers, so its state is that of the owner: an active standby, as in Flux (Shah et al.,
SIGMOD 2004), whose two copies are kept alike by the log instead of a sequence number on each tuple.
It writes nothing.

A batch takes the follower about as long as the owner. So that it can catch up, batches in a row
that had no late record are executed as one, with the end and the watermark of the last. The state
is the same: it is a function of the accepted records and of the last watermark (see the decision on
pieces of a rebuild), and without late records, those accepted do not depend on where batches end.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.markers.commit_marker import CHECKSUMS, CommitMarker, Judged


@dataclass(frozen=True, slots=True)
class Repeat:
    """Execute batches as one.

    Args:
        marker: what is expected of it: the last marker, with the decisions of all.
        number: of markers that it stands for.
    """

    marker: CommitMarker
    number: int = 1


@dataclass(frozen=True, slots=True)
class PassOver:
    """Nothing to execute: the marker is a copy, or its batch has changed no state."""

    marker: CommitMarker


@dataclass(frozen=True, slots=True)
class Lost:
    """The marker does not follow: the state has to be built again."""

    why: str


def follow(
    at: CommitMarker, waiting: Sequence[CommitMarker], most: int
) -> Repeat | PassOver | Lost:
    """Decide what follows from the next markers.

    Args:
        at: the marker whose state the follower has.
        waiting: the next ones in the topic, at least one.
        most: maximum number of records in a batch, unless the owner had more in one.
    """
    marker = waiting[0]
    if why := _gap(at, marker):
        return Lost(why)
    if marker.batch == at.batch or _is_alike(at, marker):
        return PassOver(marker)
    expected, number = marker, 1
    for following in waiting[1:]:
        merged = _merged(expected, following, most)
        if merged is None:
            break
        expected, number = merged, number + 1
    return Repeat(expected, number)


def repeats(at: CommitMarker, waiting: Sequence[CommitMarker], most: int) -> int:
    """How many batches the follower would execute to repeat the next markers, up to a gap.

    Args:
        at: as of `follow`.
        waiting: as of `follow`; may be empty.
        most: as of `follow`.
    """
    done = found = 0
    while done < len(waiting):
        match follow(at, waiting[done:], most):
            case Repeat(number=number):
                done, found = done + number, found + 1
            case PassOver():
                done += 1
            case Lost():
                return found
        at = waiting[done - 1]
    return found


def _merged(marker: CommitMarker, following: CommitMarker, most: int) -> CommitMarker | None:
    """What is expected of two batches as one; None: they are executed apart."""
    if _gap(marker, following):
        return None
    if following.batch == marker.batch:
        return replace(following, start=marker.start, late_ms=marker.late_ms, judged=marker.judged)
    one, two = marker.judged, following.judged
    if one is None or two is None or one.late or two.late or one.records + two.records > most:
        return None
    judged = Judged(
        records=one.records + two.records,
        bad=one.bad + two.bad,
        late=False,
        refused=(one.refused + two.refused) % CHECKSUMS,
        failed=one.failed + two.failed,
        results=_sum(one.results, two.results),
    )
    return replace(following, start=marker.start, late_ms=marker.late_ms, judged=judged)


def _sum(one: int | None, two: int | None) -> int | None:
    return None if one is None or two is None else one + two


def _gap(at: CommitMarker, marker: CommitMarker) -> str:
    """Why a marker does not follow on another one; empty: it does."""
    has_next = marker.batch == at.batch + 1
    gaps = (
        (
            not marker.continues(at),
            f"incarnation {marker.incarnation} has taken the place of {at.incarnation}",
        ),
        ((marker.plan, marker.state) != (at.plan, at.state), "the owner runs another plan"),
        (marker.end.keys() != at.end.keys(), "the owner reads other partitions"),
        (
            marker.batch == at.batch and not _is_alike(at, marker),
            f"batch {marker.batch} has two markers with other ends",
        ),
        (
            marker.batch != at.batch and (not has_next or dict(marker.start) != dict(at.end)),
            f"batch {marker.batch} follows batch {at.batch}: markers are missing",
        ),
        (
            has_next and marker.judged is None,
            f"batch {marker.batch} has no decisions to compare with",
        ),
        (
            has_next and _is_alike(at, marker) and results_of(at, marker) != 0,
            f"batch {marker.batch} has changed nothing, and has results",
        ),
    )
    return next((why for is_one, why in gaps if is_one), "")


def _is_alike(at: CommitMarker, marker: CommitMarker) -> bool:
    """Whether two markers are at the same positions, under the same watermark."""
    return dict(marker.end) == dict(at.end) and marker.eviction_ms == at.eviction_ms


def cannot_reach(at: CommitMarker, newest: CommitMarker) -> str:
    """Why a state cannot be brought to a later marker at once; empty: it can.

    Args:
        at: the marker whose state the follower has.
        newest: a later one of the topic; those between may be missing.
    """
    gaps = (
        (not newest.continues(at), f"incarnation {newest.incarnation} has taken its place"),
        ((newest.plan, newest.state) != (at.plan, at.state), "the owner runs another plan"),
        (newest.end.keys() != at.end.keys(), "the owner reads other partitions"),
        (newest.judged is None, f"batch {newest.batch} has no decisions to compare with"),
        (newest.batch < at.batch, f"batch {newest.batch} is before batch {at.batch}"),
    )
    return next((why for is_one, why in gaps if is_one), "")


def results_of(at: CommitMarker, marker: CommitMarker) -> int:
    """How many results the batch of a marker has written; `at`: the marker before it."""
    return marker.totals.records_out - at.totals.records_out

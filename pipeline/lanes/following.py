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

from pipeline.errors import RetryError
from pipeline.markers.commit_marker import CHECKSUMS, CommitMarker, Judged


class UnlikeOwnerError(RetryError):
    """A batch has another outcome than the owner's: the state is repaired, or discarded."""

    code = "unlike-owner"


class NotToFollowError(RetryError):
    """The owner's lane cannot be followed now; later it can."""

    code = "not-to-follow"


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
    """Nothing to execute.

    The marker is a copy, its batch has changed no state, or it begins an incarnation with it.
    """

    marker: CommitMarker


@dataclass(frozen=True, slots=True)
class Grow:
    """The owner reads more partitions: the query has to, before it repeats the next batch.

    Args:
        at: the marker whose state the follower has, with the new partitions, of which nothing was
            read: the state is the same.
    """

    at: CommitMarker


@dataclass(frozen=True, slots=True)
class Hole:
    """Compaction has removed markers before the next one.

    Its state can be reached all the same, by reading what is missing at once.
    """


@dataclass(frozen=True, slots=True)
class Lost:
    """The marker does not follow.

    Args:
        why: the reason.
        is_whole: whether the state is that of an earlier marker of the lane, so that the next
            follower may begin from it; else it has to be built again.
    """

    why: str
    is_whole: bool = False


def follow(
    at: CommitMarker, waiting: Sequence[CommitMarker], most: int
) -> Repeat | PassOver | Grow | Hole | Lost:
    """Decide what follows from the next markers.

    Args:
        at: the marker whose state the follower has.
        waiting: the next ones in the topic, at least one.
        most: maximum number of records in a batch, unless the owner had more in one.
    """
    marker = waiting[0]
    larger = grown(at, marker)
    if larger is not at:
        return Grow(larger)
    if succeeds(at, marker):
        return PassOver(marker)
    if marker.batch > at.batch + 1 and not _leaves(at, marker):
        return Hole()
    if why := _gap(at, marker):
        return Lost(why, is_whole=bool(_leaves(at, marker)) and marker.batch >= at.batch)
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
            case Grow(larger):
                at = larger
                continue
            case Hole() | Lost():
                return found
        at = waiting[done - 1]
    return found


def grown(at: CommitMarker, marker: CommitMarker) -> CommitMarker:
    """A marker with the partitions that a later one has besides, if they begin at 0.

    The state is the same whether or not a partition is known of which nothing was read. Spark
    begins a partition that a checkpoint does not have at 0, and nowhere else.

    Args:
        at: the marker whose state the follower has.
        marker: a later one.

    Returns:
        `at` itself if there are none, or if one begins elsewhere.
    """
    new = {place: offset for place, offset in marker.start.items() if place not in at.end}
    if not new or any(new.values()) or not at.end.keys() <= marker.start.keys():
        return at
    if (marker.plan, marker.state) != (at.plan, at.state) or not _reads_alike(at, marker):
        return at
    return replace(
        at,
        start={**at.start, **new},
        end={**at.end, **new},
        needed={**at.needed, **new},
        sources=marker.sources,
    )


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
        (bool(left := _leaves(at, replace(marker, batch=at.batch))), left),
        (
            marker.batch == at.batch and not _is_alike(at, marker),
            f"batch {marker.batch} has two markers with other ends",
        ),
        (
            marker.batch != at.batch and (not has_next or dict(marker.start) != dict(at.end)),
            f"batch {marker.batch} follows batch {at.batch}, and begins elsewhere",
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


def _reads_alike(at: CommitMarker, marker: CommitMarker) -> bool:
    """Whether two markers have the same sources; one may have another topic besides."""
    return [one.id for one in at.sources] == [one.id for one in marker.sources]


def _is_alike(at: CommitMarker, marker: CommitMarker) -> bool:
    """Whether two markers are at the same positions, under the same watermark."""
    return dict(marker.end) == dict(at.end) and marker.eviction_ms == at.eviction_ms


def succeeds(at: CommitMarker, marker: CommitMarker) -> bool:
    """Whether a marker begins another incarnation with exactly the state of an earlier one.

    Its lane has built the state up to the earlier marker again, from the log or by a follower. One
    that a choice of the user began may have another state at the same positions.
    """
    begins = marker.incarnation != at.incarnation and marker.judged is None and not marker.chosen
    begins = begins and marker.decided == at.decided  # a deploy carries each choice out
    begins = begins and marker.gap == at.gap  # after a gap the state is empty
    same = replace(at, incarnation=marker.incarnation, batch=marker.batch)
    return begins and _is_alike(at, marker) and not _leaves(same, marker)


def cannot_reach(at: CommitMarker, waiting: Sequence[CommitMarker]) -> str:
    """Why a state cannot be brought to the last of some markers at once; empty: it can.

    Args:
        at: the marker whose state the follower has.
        waiting: the next ones in the topic, at least one; compaction may have removed some.
    """
    for marker in waiting:
        at = grown(at, marker)
        if not succeeds(at, marker) and (why := _leaves(at, marker)):
            return why
        at = marker
    return "" if at.judged else f"batch {at.batch} has no decisions to compare with"


def _leaves(at: CommitMarker, later: CommitMarker) -> str:
    """Why a state cannot be brought to a marker, whatever is in between; empty: it can."""
    gaps = (
        (
            not later.continues(at),
            f"incarnation {later.incarnation} has taken the place of {at.incarnation}",
        ),
        ((later.plan, later.state) != (at.plan, at.state), "the owner runs another plan"),
        (later.end.keys() != at.end.keys(), "the owner reads other partitions"),
        (later.batch < at.batch, f"batch {later.batch} is before batch {at.batch}"),
    )
    return next((why for is_one, why in gaps if is_one), "")


def results_of(at: CommitMarker, marker: CommitMarker) -> int:
    """How many results the batch of a marker has written; `at`: the marker before it."""
    return marker.totals.records_out - at.totals.records_out

"""Invariants over the commit markers of a fragment, in the order of their offsets. Pure.

Each marker begins where the previous one ended, and values that only grow never decrease. A new
owner repeats the last marker under its own epoch; a new incarnation continues at its positions, or
further back if the user chose so since Kafka has lost records. Positions are compared where both
markers have one: a deploy may add or remove inputs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.markers.positions import InputPartition, Positions

CHECKED_MAX: Final = 8
"""Number of the newest markers that are checked at a start."""
_HINT: Final = (
    "nothing was published since; keep the topic and report this. Restore the topic if it was "
    "written to by anything but Medusa; else destroy the network and deploy it again"
)


_Place = tuple[str, str, int]
"""Source, topic and partition: by ids, if the marker contains them."""
_Placed = Mapping[_Place, tuple[InputPartition, Offset]]


class Breach(Enum):
    """Kind of a broken invariant."""

    EPOCH = "epoch"
    """An earlier owner wrote after a later one."""
    GAP = "gap"
    """Records between the two are in no batch."""
    OVERLAP = "overlap"
    """Records are in both batches."""
    ORDER = "order"
    """A value that only grows decreased, or batch numbers are not consecutive."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken invariant.

    Args:
        breach: its kind.
        at: place of the later marker in the sequence, from 0.
        text: description.
    """

    breach: Breach
    at: int
    text: str


def violations(markers: Sequence[CommitMarker], *, complete: bool = True) -> tuple[Violation, ...]:
    """Find broken invariants among consecutive markers; empty: none.

    Args:
        markers: in the order of their offsets.
        complete: whether no marker between the first and the last is missing. Else Kafka may have
            compacted some away: only values that never decrease are compared across a gap.
    """
    return tuple(
        Violation(breach, at, text)
        for at, (before, after) in enumerate(pairwise(markers), start=1)
        for breach, text in _between(before, after, complete=complete)
    )


def check_follows(last: CommitMarker, marker: CommitMarker) -> None:
    """Check that the marker of a new batch follows the last one, before it is written.

    Raises:
        BrokenInvariantError: it does not; nothing of the batch was published.
    """
    wrong = [text for _, text in _between(last, marker, complete=True)]
    wrong += [
        f"{_where(at, last.end[at])} is the end of the last batch, and not read by this one"
        for at in sorted(last.end.keys() - marker.end.keys())
    ]
    wrong += [
        f"{_where(at, marker.end[at])} is the end of a partition that has no begin"
        for at in sorted(marker.end.keys() - last.end.keys())
    ]
    if wrong:
        raise BrokenInvariantError(
            f"batch {marker.batch} does not follow on batch {last.batch}: {'; '.join(wrong)}",
            place=f"incarnation {marker.incarnation}",
            hint="nothing of the batch was published; keep topics and checkpoints, and report this",
        )


def check_markers(markers: Sequence[CommitMarker], place: str) -> None:
    """Check the newest markers in a topic, before a lane continues from the last.

    Args:
        markers: in the order of their offsets; some may have been compacted away.
        place: names the topic, for the error.

    Raises:
        BrokenInvariantError: they contradict each other.
    """
    found = violations(markers, complete=False)
    if found:
        texts = "; ".join(dict.fromkeys(violation.text for violation in found))
        raise BrokenInvariantError(
            f"commit markers contradict each other: {texts}", place=place, hint=_HINT
        )


def _between(
    before: CommitMarker, after: CommitMarker, *, complete: bool
) -> Iterator[tuple[Breach, str]]:
    if after.epoch < before.epoch:
        text = f"epoch {after.epoch} wrote a marker, although epoch {before.epoch} had written"
        yield Breach.EPOCH, text
        return
    if after.incarnation == before.incarnation:
        yield from _of_one_life(before, after, complete=complete)
    yield from _never_falls("boundary", before.boundary_ms, after.boundary_ms)
    was, now = before.totals, after.totals
    yield from _never_falls("records in", was.records_in, now.records_in)
    yield from _never_falls("records out", was.records_out, now.records_out)
    yield from _never_falls("dead letters", was.dead_letters, now.dead_letters)
    yield from _never_falls("late records", was.late_dropped, now.late_dropped)
    yield from _never_falls("skipped records", was.skipped, now.skipped)
    if not after.chosen or after.incarnation == before.incarnation:
        yield from _never_back("end", _ends(before), _ends(after))
    for at, needed, end in _of_both(_needed(after), _ends(after)):
        if needed > end:
            yield Breach.ORDER, f"{_where(at, needed)} is needed, beyond the end {end}"


def _of_one_life(
    before: CommitMarker, after: CommitMarker, *, complete: bool
) -> Iterator[tuple[Breach, str]]:
    """Invariants within one incarnation."""
    steps = after.batch - before.batch
    yield from _as_cut(before, after)
    if steps == 1:
        for at, ended, begins in _of_both(_ends(before), _placed(after, after.start)):
            if begins != ended:
                breach = Breach.GAP if begins > ended else Breach.OVERLAP
                text = f"batch {after.batch} begins at {_where(at, begins)}, the batch before "
                yield breach, f"{text}ended at offset {ended}"
        # Nothing is late in batch 0: a lane that takes an output over has a watermark before it.
        late_ms = None if before.batch == NO_BATCH else before.eviction_ms
        if after.late_ms != late_ms:
            text = f"records of batch {after.batch} were late by {after.late_ms}, the batch before "
            yield Breach.ORDER, f"{text}ran under watermark {before.eviction_ms}"
    elif steps < 0 or (complete and steps > 1):
        yield Breach.ORDER, f"batch {after.batch} follows on batch {before.batch}"
    yield from _never_falls("watermark of late records", before.late_ms, after.late_ms)
    yield from _never_falls("watermark of the state", before.eviction_ms, after.eviction_ms)
    yield from _never_back("needed position", _needed(before), _needed(after))
    if before.state != after.state:
        yield Breach.ORDER, "the state is of another plan, in the same incarnation"


def _as_cut(before: CommitMarker, after: CommitMarker) -> Iterator[tuple[Breach, str]]:
    """A batch ends as it was cut, also in a copy of the marker that has its cut."""
    is_copy = after.batch == before.batch and after.cut is not None
    if before.cut is None or not (is_copy or after.batch == before.batch + 1):
        return
    cut = _placed(before, before.cut.end)
    for at, was, ends in _of_both(cut, _placed(after, after.reached if is_copy else after.end)):
        if was != ends:
            text = f"batch {before.batch + 1} was cut at {_where(at, was)}, and ends at offset "
            yield Breach.ORDER, f"{text}{ends}"


def _never_falls(what: str, was: int | None, now: int | None) -> Iterator[tuple[Breach, str]]:
    if was is not None and (now is None or now < was):
        yield Breach.ORDER, f"{what} {now} after {was}"


def _never_back(what: str, before: _Placed, after: _Placed) -> Iterator[tuple[Breach, str]]:
    for at, was, now in _of_both(before, after):
        if now < was:
            yield Breach.ORDER, f"the {what} went back to {_where(at, now)} from {was}"


def _of_both(before: _Placed, after: _Placed) -> Iterator[tuple[InputPartition, Offset, Offset]]:
    """Positions that both contain, under the later names."""
    for place in sorted(before.keys() & after.keys()):
        at, now = after[place]
        yield at, before[place][1], now


def _ends(marker: CommitMarker) -> _Placed:
    return _placed(marker, marker.end)


def _needed(marker: CommitMarker) -> _Placed:
    return _placed(marker, marker.needed)


def _placed(marker: CommitMarker, positions: Positions) -> _Placed:
    """Positions by ids, which are independent of stream names."""
    known = {source.name: source for source in marker.sources}
    found: dict[_Place, tuple[InputPartition, Offset]] = {}
    for at, offset in positions.items():
        source = known.get(at.input)
        place: _Place = (at.input, at.topic, at.partition)
        if source is not None:
            place = (source.id, dict(source.topics).get(at.topic, at.topic), at.partition)
        found[place] = (at, offset)
    return found


def _where(at: InputPartition, offset: Offset) -> str:
    return f"topic {at.topic}, partition {at.partition}, offset {offset} (input {at.input})"

"""Parts of the pauses of moves, from commit markers and the event log."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from benchmarks.harness import median

PARTS = ("released", "claimed", "first marker", "first batch")
"""The parts, in their order; the first begins with the last marker of the owner before."""


@dataclass(frozen=True, slots=True)
class Written:
    """A commit marker: its epoch, and the time of its record, in ms of wall time.

    The first marker of an owner is a copy, whose own time is that of the last batch before.
    """

    epoch: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A release or a claim of the event log, by the epoch of which it is."""

    kind: str
    epoch: int
    at_ms: int


def entries_of(events: Iterable[Mapping[str, object]]) -> list[Entry]:
    """Releases and claims among entries that `medusa events -o json` has printed.

    >>> event = {"kind": "claimed", "time": "1970-01-01T00:00:00.007Z", "facts": {"epoch": "2"}}
    >>> entries_of([event, {"kind": "drained", "time": "1970-01-01T00:00:00.008Z"}])
    [Entry(kind='claimed', epoch=2, at_ms=7)]
    """
    found: list[Entry] = []
    for event in events:
        facts, kind = event.get("facts"), str(event["kind"])
        if kind in {"released", "claimed"} and isinstance(facts, Mapping):
            at = datetime.fromisoformat(str(event["time"]))
            found.append(Entry(kind, int(facts["epoch"]), round(1_000 * at.timestamp())))
    return found


def parts_ms(markers: Sequence[Written], entries: Iterable[Entry]) -> list[tuple[int, ...]]:
    """The duration of each of `PARTS`, for each change of the owner that is whole.

    Args:
        markers: in their order.
        entries: of the same fragment.
    """
    at_ms = {(entry.kind, entry.epoch): entry.at_ms for entry in entries}
    found: list[tuple[int, ...]] = []
    for index, (last, first) in enumerate(pairwise(markers)):
        after = markers[index + 2 : index + 3]
        if last.epoch == first.epoch or not after or after[0].epoch != first.epoch:
            continue
        released = at_ms.get(("released", last.epoch))
        claimed = at_ms.get(("claimed", first.epoch))
        if released is None or claimed is None:
            continue
        times = (last.at_ms, released, claimed, first.at_ms, after[0].at_ms)
        found.append(tuple(end - begin for begin, end in pairwise(times)))
    return found


def parts_text(found: Sequence[Sequence[int]]) -> str:
    """Median and worst of each part.

    >>> parts_text([(1, 2, 3, 4), (3, 2, 5, 4)])
    'released 2 (3), claimed 2 (2), first marker 4 (5), first batch 4 (4) ms'
    """
    if not found:
        return "no change of the owner is whole in markers and events"
    texts = (
        f"{name} {median(list(map(float, of_part))):.0f} ({max(of_part)})"
        for name, of_part in zip(PARTS, zip(*found, strict=True), strict=True)
    )
    return f"{', '.join(texts)} ms"

"""Purge decision: the oldest dead letters, up to the first that a rebuild needs. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.dead_letters.letter import Letter
from pipeline.ids import Millis, Offset


@dataclass(frozen=True, slots=True)
class Purge:
    """Effects of a purge.

    Args:
        until: partition → offset below which everything is removed; at most the end that was read.
        removed: number of dead letters that are removed.
        needed: number kept because a rebuild needs one of them, or one before them.
        younger: number kept because they, or one before them, are too young.
    """

    until: Mapping[int, Offset]
    removed: int
    needed: int
    younger: int


def purge(
    letters: Iterable[Letter],
    ends: Mapping[int, Offset],
    before_ms: Millis | None,
    needed_from: Mapping[int, Offset],
) -> Purge:
    """Compute the offsets to remove up to.

    Args:
        letters: all dead letters, within a partition in the order of their offsets.
        ends: the end of each partition when they were read.
        before_ms: only those appended before; None: of any age.
        needed_from: partition → offset from which on a rebuild needs them.
    """
    until: dict[int, Offset] = {}
    stopped_by: dict[int, str] = {}
    counts = {"removed": 0, "needed": 0, "younger": 0}
    for letter in letters:
        partition, offset = letter.number
        if partition not in stopped_by:
            why = _why_kept(letter, before_ms, needed_from)
            if not why:
                counts["removed"] += 1
                continue
            stopped_by[partition], until[partition] = why, offset
        counts[stopped_by[partition]] += 1
    # A rebuild needs the offsets themselves, also where its first letter is behind a gap.
    until = {p: min(until.get(p, end), needed_from.get(p, end)) for p, end in ends.items()}
    return Purge(until, counts["removed"], counts["needed"], counts["younger"])


def _why_kept(letter: Letter, before_ms: Millis | None, needed_from: Mapping[int, Offset]) -> str:
    if before_ms is not None and letter.appended_ms >= before_ms:
        return "younger"
    partition, offset = letter.number
    return "needed" if offset >= needed_from.get(partition, offset + 1) else ""

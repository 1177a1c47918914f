"""Which dead letters can be removed: from the oldest on, and none that a rebuild needs. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.dead_letters.letter import Letter
from pipeline.ids import Millis, Offset


@dataclass(frozen=True, slots=True)
class Purge:
    """What a purge removes.

    Args:
        until: per partition the offset before which everything goes; no more than where it ended
            when it was looked at.
        removed: how many letters that are.
        needed: how many stay because a rebuild needs one of them, or one before them.
        younger: how many stay because they, or one before them, are not old enough.
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
    """Decide; letters come in the order of their offsets within a partition.

    Args:
        letters: all that there are.
        ends: the end of each partition when they were read.
        before_ms: only what came before; None: whatever its age.
        needed_from: per partition the offset from which on a rebuild needs them.
    """
    until: dict[int, Offset] = {}
    stopped_by: dict[int, str] = {}
    counts = {"removed": 0, "needed": 0, "younger": 0}
    for letter in letters:
        partition, offset = letter.number
        if partition not in stopped_by:
            why = _stays(letter, before_ms, needed_from)
            if not why:
                counts["removed"] += 1
                continue
            stopped_by[partition], until[partition] = why, offset
        counts[stopped_by[partition]] += 1
    until = {p: until.get(p, end) for p, end in ends.items()}
    return Purge(until, counts["removed"], counts["needed"], counts["younger"])


def _stays(letter: Letter, before_ms: Millis | None, needed_from: Mapping[int, Offset]) -> str:
    if before_ms is not None and letter.came_ms >= before_ms:
        return "younger"
    partition, offset = letter.number
    return "needed" if offset >= needed_from.get(partition, offset + 1) else ""

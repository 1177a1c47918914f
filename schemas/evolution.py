"""What may be done to a schema next under a level, judged by the rules themselves. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.avro import AvroSchema
from schemas.candidates import Candidate, candidates
from schemas.compatibility import Level, check
from schemas.meaning import other_meanings

ASKED: dict[Level, str] = {
    Level.NONE: "anything may be registered",
    Level.BACKWARD: "a new version must read what was written with the newest",
    Level.BACKWARD_TRANSITIVE: "a new version must read what was written with any version",
    Level.FORWARD: "the newest version must read what is written with a new one",
    Level.FORWARD_TRANSITIVE: "every version must read what is written with a new one",
    Level.FULL: "a new version and the newest must read each other's data",
    Level.FULL_TRANSITIVE: "a new version and every other must read each other's data",
}
"""What each level asks of a new version, in a sentence."""
STEPS = (Level.BACKWARD, Level.FORWARD, Level.FULL)
"""The levels that one step from a version to another keeps or breaks."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one change is allowed.

    Args:
        change: what would be done.
        reasons: why it is not allowed; empty: it is.
        meanings: where it is allowed, and values would yet be taken for something else.
    """

    change: Candidate
    reasons: tuple[str, ...]
    meanings: tuple[str, ...]

    @property
    def allowed(self) -> bool:
        """Whether a registry would take it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Group:
    """Verdicts on the same sort of change that are the same."""

    action: str
    allowed: bool
    verdicts: tuple[Verdict, ...]


def evolution(
    level: Level,
    versions: Sequence[AvroSchema],
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Verdict, ...]:
    """Every usual change of the newest version with the verdict of the rules.

    Args:
        level: which is in force.
        versions: all of the subject, oldest first; at least one.
        progress: told what is done, how much of it, and how much there is.
    """
    found: list[Verdict] = []
    tried = candidates(versions[-1])
    for change in tried:
        if progress is not None:
            progress("trying changes", len(found), len(tried))
        reasons = check(level, change.schema, versions)
        meanings = () if reasons else other_meanings(change.schema, versions[-1])
        found.append(Verdict(change, reasons, meanings))
    return tuple(found)


def grouped(verdicts: Sequence[Verdict]) -> tuple[Group, ...]:
    """The verdicts by sort of change, what is allowed first."""
    found: dict[tuple[bool, str], list[Verdict]] = {}
    for one in verdicts:
        found.setdefault((one.allowed, one.change.action), []).append(one)
    ordered = sorted(found.items(), key=lambda item: not item[0][0])
    return tuple(Group(action, allowed, tuple(of)) for (allowed, action), of in ordered)


def kept(old: AvroSchema, new: AvroSchema) -> dict[Level, tuple[str, ...]]:
    """For each of `STEPS` why the step from one schema to another breaks it; empty: it keeps it."""
    return {level: check(level, new, [old]) for level in STEPS}

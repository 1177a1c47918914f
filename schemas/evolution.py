"""Schema evolution: the changes of a schema that a compatibility level allows. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.avro import AvroSchema
from schemas.candidates import Candidate, candidates
from schemas.compatibility import Level, check
from schemas.meaning import other_meanings

REQUIREMENTS: dict[Level, str] = {
    Level.NONE: "anything may be registered",
    Level.BACKWARD: "a new version must read what was written with the newest",
    Level.BACKWARD_TRANSITIVE: "a new version must read what was written with any version",
    Level.FORWARD: "the newest version must read what is written with a new one",
    Level.FORWARD_TRANSITIVE: "every version must read what is written with a new one",
    Level.FULL: "a new version and the newest must read each other's data",
    Level.FULL_TRANSITIVE: "a new version and every other must read each other's data",
}
"""The requirement of each level on a new version, as a sentence."""
STEPS = (Level.BACKWARD, Level.FORWARD, Level.FULL)
"""The levels that are checked for a step from one version to the next."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one change is allowed.

    Args:
        change: the change.
        reasons: why it is not allowed; empty: it is.
        meanings: if it is allowed: values that would be misinterpreted nevertheless.
    """

    change: Candidate
    reasons: tuple[str, ...]
    meanings: tuple[str, ...]

    @property
    def allowed(self) -> bool:
        """Whether a registry would accept it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Group:
    """Verdicts on the same sort of change, all allowed or all not."""

    action: str
    allowed: bool
    verdicts: tuple[Verdict, ...]


def evolution(
    level: Level,
    versions: Sequence[AvroSchema],
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[Verdict, ...]:
    """Check every usual change of the newest version against a level.

    Args:
        level: the effective level.
        versions: all of the subject, oldest first; at least one.
        progress: called with the step, the number done, and the total.
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
    """The verdicts by sort of change, allowed ones first."""
    found: dict[tuple[bool, str], list[Verdict]] = {}
    for one in verdicts:
        found.setdefault((one.allowed, one.change.action), []).append(one)
    ordered = sorted(found.items(), key=lambda item: not item[0][0])
    return tuple(Group(action, allowed, tuple(of)) for (allowed, action), of in ordered)


def kept(old: AvroSchema, new: AvroSchema) -> dict[Level, tuple[str, ...]]:
    """For each of `STEPS` the violations by the step from one schema to another; empty if none."""
    return {level: check(level, new, [old]) for level in STEPS}

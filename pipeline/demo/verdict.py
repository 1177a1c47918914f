"""What the demo says at its end, and whether all was right. Pure."""

from dataclasses import dataclass

from pipeline.reference.compare import Comparison, describe

_SHOWN = 5
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run ended.

    Args:
        fed: how many sightings were delivered.
        complete: whether the boundaries of all outputs passed the last sighting in time.
        comparisons: output beside reference.
        dead_letters: any is a failure, since the feed has no bad record.
        memory_bytes: the most that all processes together took; None where nobody can tell.
    """

    fed: int
    complete: bool
    comparisons: tuple[Comparison, ...]
    dead_letters: tuple[str, ...]
    memory_bytes: int | None

    @property
    def right(self) -> bool:
        """Whether every result is right, nothing is missing, and there was something to compare."""
        return (
            self.complete
            and not self.dead_letters
            and all(c.exact and c.expected for c in self.comparisons)
        )


def as_lines(verdict: Verdict) -> tuple[str, ...]:
    """The last words of the demo."""
    lines = [f"{verdict.fed:,} sightings fed"]
    for comparison in verdict.comparisons:
        lines += describe(comparison, _SHOWN)
        if not comparison.expected:
            lines.append(f"  no {comparison.name} were due: feed longer (--seconds)")
    if verdict.dead_letters:
        lines.append(f"dead letters: {len(verdict.dead_letters)}")
        lines += [f"    {letter}" for letter in verdict.dead_letters[:_SHOWN]]
    if not verdict.complete:
        lines.append("the last windows did not close in time")
    if verdict.memory_bytes is not None:
        lines.append(f"memory of all processes: at most {verdict.memory_bytes / GIB:.2f} GiB")
    compared = sum(comparison.expected for comparison in verdict.comparisons)
    lines.append(
        f"All {compared:,} results are right." if verdict.right else "The results are NOT right."
    )
    return tuple(lines)

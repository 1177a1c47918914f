"""The result of a run, and its report. Pure."""

from dataclasses import dataclass

from pipeline.counting import counted
from pipeline.examples.cut import CutReport
from pipeline.examples.cut import as_lines as cut_lines
from pipeline.examples.moving import Lost, Moved
from pipeline.reference.compare import Comparison, describe

_SHOWN = 5
GIB = 1 << 30
_COLUMNS = ("OUTPUT", "DUE", "CAME", "RIGHT", "MISSING", "UNEXPECTED", "DUPLICATED", "DIFFERENT")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a run.

    Args:
        what: name of the input records, in the plural.
        fed: number of delivered input records.
        complete: whether the boundaries of all outputs passed the last record in time.
        comparisons: of outputs with the reference.
        dead_letters: their number.
        wrong_letters: wrong and missing dead letters, in words.
        memory_bytes: the largest memory of all processes together; None if unknown.
        moved: the fragment that was moved meanwhile; None: none.
        lost: the node that was killed after that; None: none.
        cut: what became of the tentative results after a cut; None: there was none.
    """

    what: str
    fed: int
    complete: bool
    comparisons: tuple[Comparison, ...]
    dead_letters: int
    wrong_letters: tuple[str, ...]
    memory_bytes: int | None
    moved: Moved | None = None
    lost: Lost | None = None
    cut: CutReport | None = None

    @property
    def right(self) -> bool:
        """Whether every result is right, nothing is missing, and there was something to compare.

        After a cut all tentative results are settled as well.
        """
        return (
            self.complete
            and not self.wrong_letters
            and (self.cut is None or self.cut.right)
            and all(c.exact and c.expected for c in self.comparisons)
        )


def as_lines(verdict: Verdict) -> tuple[str, ...]:
    """The lines of the report."""
    lines = [f"{verdict.fed:,} {verdict.what} fed", *_table(verdict.comparisons)]
    for comparison in verdict.comparisons:
        if not comparison.exact:
            lines += describe(comparison, _SHOWN)
        if not comparison.expected:
            lines.append(f"no {comparison.name} were due: feed longer (--seconds)")
    if verdict.dead_letters:
        lines.append(
            f"{counted(verdict.dead_letters, 'dead letter')}, {len(verdict.wrong_letters)} wrong"
        )
    elif verdict.wrong_letters:
        lines.append(f"dead letters that should be there: {len(verdict.wrong_letters)}")
    lines += [f"    {letter}" for letter in verdict.wrong_letters[:_SHOWN]]
    if not verdict.complete:
        lines.append("the last windows did not close in time")
    lines += _changes(verdict)
    if verdict.memory_bytes is not None:
        lines.append(f"memory of all processes: at most {verdict.memory_bytes / GIB:.2f} GiB")
    compared = sum(comparison.expected for comparison in verdict.comparisons)
    lines.append(
        f"All {compared:,} results are right." if verdict.right else "The results are NOT right."
    )
    return tuple(lines)


def _changes(verdict: Verdict) -> list[str]:
    """What was changed in the middle."""
    lines: list[str] = []
    if verdict.moved is not None:
        moved = verdict.moved
        pause = _pause(moved.pause_ms)
        lines.append(f"{moved.fragment} moved to {moved.to} meanwhile; the pause {pause}")
    if verdict.lost is not None:
        lost = verdict.lost
        ran, pause = counted(lost.fragments, "fragment"), _pause(lost.pause_ms)
        lines.append(
            f"{lost.node}, which ran {ran}, was killed after that; the longest pause {pause}"
        )
    if verdict.cut is not None:
        lines += cut_lines(verdict.cut)
    return lines


def _pause(pause_ms: int | None) -> str:
    return "is not known" if pause_ms is None else f"was {pause_ms:,} ms"


def _table(comparisons: tuple[Comparison, ...]) -> list[str]:
    """The outputs as a table."""
    rows = [_COLUMNS, *(_cells(comparison) for comparison in comparisons)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_COLUMNS))]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in rows
    ]


def _cells(comparison: Comparison) -> tuple[str, ...]:
    numbers = (
        comparison.expected,
        comparison.seen,
        comparison.right,
        len(comparison.missing),
        len(comparison.unexpected),
        len(comparison.duplicated),
        len(comparison.different),
    )
    return (comparison.name, *(f"{number:,}" for number in numbers))

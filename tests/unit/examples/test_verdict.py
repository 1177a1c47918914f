from dataclasses import replace

import pytest

from pipeline.examples.cut import Cut, CutKind, CutReport, Outcome, Seen
from pipeline.examples.verdict import Verdict, as_lines
from pipeline.ids import Millis
from pipeline.reference.compare import Comparison, Row, compare

ROW: Row = ("a", 2.0)


def compared(name: str, expected: list[Row], seen: list[Row]) -> Comparison:
    """A comparison of rows with a car and a toll."""
    return compare(name, ("car", "toll"), ("car",), expected, seen)


RIGHT = Verdict(
    what="sightings",
    fed=1_000,
    complete=True,
    comparisons=(compared("tolls", [ROW, ROW], [ROW, ROW]), compared("tows", [ROW], [ROW])),
    dead_letters=0,
    wrong_letters=(),
    memory_bytes=5 << 29,
)


def test_a_correct_run_reports_the_number_of_results() -> None:
    """The last line is the sum of all outputs."""
    assert RIGHT.right
    assert as_lines(RIGHT) == (
        "1,000 sightings fed",
        "OUTPUT  DUE  CAME  RIGHT  MISSING  UNEXPECTED  DUPLICATED  DIFFERENT",
        "tolls     2     2      2        0           0           0          0",
        "tows      1     1      1        0           0           0          0",
        "memory of all processes: at most 2.50 GiB",
        "All 3 results are right.",
    )


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        (replace(RIGHT, complete=False), "the last windows did not close in time"),
        (replace(RIGHT, dead_letters=3, wrong_letters=("x",)), "3 dead letters, 1 wrong"),
        (replace(RIGHT, wrong_letters=("x",)), "dead letters that should be there: 1"),
        (replace(RIGHT, comparisons=(compared("tolls", [ROW], []),)), "  missing: 1"),
        (replace(RIGHT, comparisons=(compared("tows", [], []),)), "no tows were due"),
    ],
)
def test_any_fault_fails_the_run(verdict: Verdict, says: str) -> None:
    """Each kind of fault alone is enough, and is reported."""
    assert not verdict.right
    lines = as_lines(verdict)
    assert any(line.startswith(says) for line in lines)
    assert lines[-1] == "The results are NOT right."


def test_a_cut_is_reported_and_has_to_be_settled() -> None:
    """Its lines come before the memory; an open tentative result fails the run."""
    cut = CutReport(
        cut=Cut(CutKind.PARTITION, 20.0),
        name="tolls",
        bound_ms=3_000,
        cut_ms=Millis(10_000),
        healed_ms=Millis(30_000),
        generations=1,
        done=1,
        open_results=0,
        usual_ms=None,
        longest_ms=None,
        done_after_ms=2_000,
        seen=(Seen(Millis(20_000), Outcome.TENTATIVE),),
    )
    verdict = replace(RIGHT, cut=cut)
    assert verdict.right
    assert as_lines(verdict)[4].startswith("partition 0 of the input was cut for 20.0 s")
    wrong = replace(RIGHT, cut=replace(cut, open_results=1))
    assert not wrong.right
    assert as_lines(wrong)[-1] == "The results are NOT right."


def test_dead_letters_with_a_valid_reason_are_correct() -> None:
    """A late record is a recorded decision, not a fault."""
    verdict = replace(RIGHT, dead_letters=1)
    assert verdict.right
    assert "1 dead letter, 0 wrong" in as_lines(verdict)


def test_unknown_memory_is_omitted() -> None:
    """Where the memory cannot be measured, there is no line about it."""
    assert not any("memory" in line for line in as_lines(replace(RIGHT, memory_bytes=None)))

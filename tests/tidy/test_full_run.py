import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.tidy.tree import ROOT, text_of
from tools.stages import JARS, Tier, stages

DOCUMENT = Path("docs/testing.md")
FOLDERS = ("pipeline/lanes", "pipeline/markers", "pipeline/boundaries", "pipeline/spark", "brokers")
"""Code that is tested by crashes and server failures, thoroughly only in the second tier."""
RECORDED = tuple(stage.name for stage in stages(Tier.SECOND, 0) if stage.name != JARS.name)
ROW = re.compile(r"^\| ([a-z0-9-]+) \| `([0-9a-f]{12})` on \d{4}-\d{2}-\d{2} \|", re.MULTILINE)


@dataclass(frozen=True)
class Record:
    """The last runs: the commit of each stage, and the limit of lines changed since."""

    commits: Mapping[str, str]
    lines_max: int


def recorded(text: str) -> Record:
    """The record in the text of the document."""
    limits = re.findall(r"differ\s+from\s+them\s+in\s+up\s+to\s+(\d+)\s+lines", text)
    assert len(limits) == 1, f"{DOCUMENT} has to say once 'differ from them in up to N lines'"
    rows = ROW.findall(text)
    names = sorted(name for name, _ in rows)
    assert names == sorted(RECORDED), f"{DOCUMENT} has a row for each of {', '.join(RECORDED)}"
    return Record(dict(rows), int(limits[0]))


def changed_lines(numstat: str) -> int:
    """Lines added and removed, from `git diff --numstat`; a binary file counts as one."""
    rows = [line.split("\t", 2) for line in numstat.splitlines()]
    return sum(1 if added == "-" else int(added) + int(removed) for added, removed, _ in rows)


def problem(record: Record, numstats: Mapping[str, str | None]) -> str:
    """The problems and their remedies; empty if there are none.

    Args:
        record: the last runs.
        numstats: of each commit, what has changed since; None: the clone lacks it.
    """
    found = []
    for commit, numstat in numstats.items():
        if numstat is None:
            found.append(
                f"commit {commit} of a recorded run is not in this clone, so changes since cannot"
                " be counted. Get the history: `git fetch --unshallow`; in CI, a full checkout."
            )
        elif (lines := changed_lines(numstat)) > record.lines_max:
            names = " ".join(name for name, of in record.commits.items() if of == commit)
            found.append(
                f"{', '.join(FOLDERS)} differ from commit {commit} in {lines} lines; {DOCUMENT}"
                f" admits {record.lines_max}. Run `make test-second STAGES={names!r}`, and write"
                " its commit, date and figures there."
            )
    return "\n".join(found)


def numstat_since(commit: str) -> str | None:
    """The difference between a commit and the working tree; None if the clone lacks the commit."""
    if _git("cat-file", "-e", f"{commit}^{{commit}}").returncode != 0:
        return None
    shown = _git("diff", "--numstat", "--find-renames", commit, "--", *FOLDERS)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def _git(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def test_each_stage_has_run_lately() -> None:
    """Code whose faults only the second tier detects has changed little since it ran last."""
    record = recorded(text_of(DOCUMENT))
    commits = sorted(set(record.commits.values()))
    found = problem(record, {commit: numstat_since(commit) for commit in commits})
    assert not found, found


def test_folders_exist_and_are_named_in_the_document() -> None:
    """A folder that was renamed would count no lines."""
    for folder in FOLDERS:
        assert (ROOT / folder).is_dir(), folder
        assert f"`{folder}`" in text_of(DOCUMENT), folder


def test_the_record_has_a_commit_of_each_stage() -> None:
    """The limit is read however the text is wrapped; a stage without a row is an error."""
    rows = [f"| {name} | `{n:012x}` on 2026-11-24 | 1 | 2 |" for n, name in enumerate(RECORDED)]
    text = "\n".join([*rows, "They differ\nfrom them in up to 30 lines."])
    record = recorded(text)
    assert record.lines_max == 30
    assert list(record.commits) == list(RECORDED)
    assert record.commits[RECORDED[1]] == "000000000001"
    with pytest.raises(AssertionError, match="a row for each of"):
        recorded(text.replace("| matrix-3 |", "| matrix-33 |"))


def test_lines_added_and_removed_are_counted() -> None:
    """Both columns count; a binary file counts as one line."""
    assert changed_lines("") == 0
    assert changed_lines("3\t4\tbrokers/a.py\n0\t2\tbrokers/b.py\n-\t-\tbrokers/c.bin\n") == 10


def test_the_check_detects_violations() -> None:
    """A change above the limit and a missing commit are reported; one at the limit is not."""
    record = Record({"lanes": "a" * 12, "nodes": "b" * 12, "unit": "a" * 12}, lines_max=7)
    assert not problem(record, {"a" * 12: "3\t4\tbrokers/a.py\n", "b" * 12: ""})
    found = problem(record, {"a" * 12: "4\t4\tbrokers/a.py\n", "b" * 12: None})
    assert "make test-second STAGES='lanes unit'" in found
    assert "git fetch --unshallow" in found
    assert numstat_since("0" * 12) is None

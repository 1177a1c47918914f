import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.tidy.tree import ROOT, text_of

DOCUMENT = Path("docs/testing.md")
FOLDERS = ("pipeline/lanes", "pipeline/markers", "pipeline/boundaries", "pipeline/spark", "brokers")
"""Code that is tested by crashes and server failures, thoroughly only in the second tier."""
RUN_AGAIN = (
    f"Run `make test-all`, and write its commit, date and figures into {DOCUMENT}"
    " under 'The last full run'."
)


@dataclass(frozen=True)
class FullRun:
    """The recorded run: its commit, and the limit of changed lines since."""

    commit: str
    lines_max: int


def recorded_run(text: str) -> FullRun:
    """The one record in the text of the document."""
    commits = re.findall(r"Commit\s+`([0-9a-f]{40})`\s+on\s+\d{4}-\d{2}-\d{2}\b", text)
    limits = re.findall(r"differ\s+from\s+it\s+in\s+up\s+to\s+(\d+)\s+lines", text)
    assert len(commits) == 1, f"{DOCUMENT} has to name one 'Commit `<40 hex digits>` on YYYY-MM-DD'"
    assert len(limits) == 1, f"{DOCUMENT} has to say once 'differ from it in up to N lines'"
    return FullRun(commits[0], int(limits[0]))


def changed_lines(numstat: str) -> int:
    """Lines added and removed, from `git diff --numstat`; a binary file counts as one."""
    rows = [line.split("\t", 2) for line in numstat.splitlines()]
    return sum(1 if added == "-" else int(added) + int(removed) for added, removed, _ in rows)


def problem(run: FullRun, numstat: str | None) -> str:
    """The problem and its remedy; empty if there is none. None: the clone lacks the commit."""
    if numstat is None:
        return (
            f"commit {run.commit} of the last full run is not in this clone, so changes since"
            " cannot be counted. Get the history: `git fetch --unshallow`; in CI, a full checkout."
        )
    lines = changed_lines(numstat)
    if lines <= run.lines_max:
        return ""
    return (
        f"{', '.join(FOLDERS)} differ from commit {run.commit[:12]} of the last full run in"
        f" {lines} lines; {DOCUMENT} admits {run.lines_max}. {RUN_AGAIN}\n{numstat}"
    )


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


def test_the_last_full_run_is_recent() -> None:
    """Code whose faults only `make test-all` detects has changed little since its last run."""
    run = recorded_run(text_of(DOCUMENT))
    found = problem(run, numstat_since(run.commit))
    assert not found, found


def test_folders_exist_and_are_named_in_the_document() -> None:
    """A folder that was renamed would count no lines."""
    for folder in FOLDERS:
        assert (ROOT / folder).is_dir(), folder
        assert f"`{folder}`" in text_of(DOCUMENT), folder


def test_the_record_is_found_across_line_ends() -> None:
    """Commit and limit are read however the text is wrapped."""
    text = f"Commit `{'a' * 40}` on\n2026-11-24. They differ\nfrom it in up to 30 lines."
    assert recorded_run(text) == FullRun("a" * 40, 30)


def test_lines_added_and_removed_are_counted() -> None:
    """Both columns count; a binary file counts as one line."""
    assert changed_lines("") == 0
    assert changed_lines("3\t4\tbrokers/a.py\n0\t2\tbrokers/b.py\n-\t-\tbrokers/c.bin\n") == 10


def test_the_check_detects_violations() -> None:
    """A change above the limit and a missing commit are reported; one at the limit is not."""
    run = FullRun("a" * 40, lines_max=7)
    assert not problem(run, "3\t4\tbrokers/a.py\n")
    assert "make test-all" in problem(run, "4\t4\tbrokers/a.py\n")
    assert "git fetch --unshallow" in problem(run, None)
    assert numstat_since("0" * 40) is None

"""Inputs of the tidy tests: the project's files, and Python files as syntax trees."""

import ast
import functools
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("medusa_streams", "pipeline", "connectors", "brokers", "schemas")


@functools.cache
def tracked_files() -> tuple[Path, ...]:
    """Every tracked or untracked, not ignored file, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    return tuple(sorted(Path(line) for line in listed.splitlines() if (ROOT / line).is_file()))


def python_files(*folders: str) -> tuple[Path, ...]:
    """The Python files below these top folders; without folders, all of them."""
    return tuple(
        path
        for path in tracked_files()
        if path.suffix == ".py" and (not folders or path.parts[0] in folders)
    )


def mentioning(words: Iterable[str], *folders: str) -> tuple[Path, ...]:
    """Those of the Python files that contain one of these words."""
    word = re.compile("|".join(map(re.escape, words)))
    return tuple(path for path in python_files(*folders) if word.search(text_of(path)))


def text_of(path: Path) -> str:
    """The text of a tracked file."""
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def tree_of(path: Path) -> ast.Module:
    """A tracked Python file as a syntax tree; of all files together they would fill the memory."""
    return ast.parse(text_of(path), filename=str(path))

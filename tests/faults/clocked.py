"""Runs `medusa` with a wall clock that can be set while it runs: `clocked.py FILE ARGUMENT…`.

The file holds by how many milliseconds the clock is ahead of the machine's, negative for behind.
Every look at the wall time in this process goes through it, those of libraries too; the monotonic
clock stays what it is, as on a machine whose clock is set.
"""

import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path

ENTRY = "pipeline.cli.main"
NS_PER_MS = 1_000_000


def ahead_ms(file: Path) -> int:
    """By how much the clock is ahead, as the file says."""
    return int(file.read_text(encoding="ascii"))


def set_ahead(file: Path, ms: int) -> None:
    """Set the clock of the process that looks into the file, at once and in one piece."""
    new = file.with_suffix(".new")
    new.write_text(str(ms), encoding="ascii")
    new.replace(file)


def wall_ns(file: Path, machine_ns: Callable[[], int]) -> Callable[[], int]:
    """A wall clock, in ns since 1970, that is ahead of the machine's by what the file says."""

    def now_ns() -> int:
        return machine_ns() + ahead_ms(file) * NS_PER_MS

    return now_ns


def main() -> None:
    """Set the clock, then be `medusa` with the other arguments."""
    now_ns = wall_ns(Path(sys.argv.pop(1)), time.time_ns)
    time.time_ns = now_ns
    time.time = lambda: now_ns() / 1e9
    runpy.run_module(ENTRY, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

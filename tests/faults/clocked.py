"""Runs `medusa` with an adjustable wall clock: `clocked.py FILE ARGUMENT…`.

The file contains the offset from the machine's clock in milliseconds, negative for a slow clock.
All reads of the wall clock in this process use it, those of libraries too; the monotonic clock is
unchanged, as on a machine whose clock is set.
"""

import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path

ENTRY = "pipeline.cli.main"
NS_PER_MS = 1_000_000


def ahead_ms(file: Path) -> int:
    """The clock's offset in the file."""
    return int(file.read_text(encoding="ascii"))


def set_ahead(file: Path, ms: int) -> None:
    """Set the clock of the process that reads the file, atomically."""
    new = file.with_suffix(".new")
    new.write_text(str(ms), encoding="ascii")
    new.replace(file)


def wall_ns(file: Path, machine_ns: Callable[[], int]) -> Callable[[], int]:
    """A wall clock, in ns since 1970, with the file's offset from the machine's."""

    def now_ns() -> int:
        return machine_ns() + ahead_ms(file) * NS_PER_MS

    return now_ns


def main() -> None:
    """Patch the clock, then run `medusa` with the other arguments."""
    now_ns = wall_ns(Path(sys.argv.pop(1)), time.time_ns)
    time.time_ns = now_ns
    time.time = lambda: now_ns() / 1e9
    runpy.run_module(ENTRY, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()

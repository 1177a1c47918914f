"""Wall clock of a node under faults."""

import subprocess
import sys
import time
from pathlib import Path

from tests.faults import clocked

HOUR_MS = 3_600_000


def test_the_clock_has_the_offset_of_the_file(tmp_path: Path) -> None:
    """At once after it was set, forward and back, by the millisecond."""
    file = tmp_path / "clock"
    clocked.set_ahead(file, 0)
    now_ns = clocked.wall_ns(file, lambda: 7_000_000_001)
    assert now_ns() == 7_000_000_001
    clocked.set_ahead(file, 2_000)
    assert now_ns() == 9_000_000_001
    clocked.set_ahead(file, -5_000)
    assert now_ns() == 2_000_000_001
    assert clocked.ahead_ms(file) == -5_000


def test_the_whole_process_uses_it(tmp_path: Path) -> None:
    """The log of `medusa` is written hours ahead, and timeouts are unchanged."""
    file = tmp_path / "clock"
    clocked.set_ahead(file, 2 * HOUR_MS)
    program = (
        "import sys, time; from tests.faults import clocked; clocked.ENTRY = 'calendar';"
        f"sys.argv = ['x', {str(file)!r}, '2020', '1']; clocked.main(); print(int(time.time()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )
    lines = done.stdout.splitlines()
    assert "January 2020" in lines[0], "the arguments after the file are the program's"
    assert 7_190 <= int(lines[-1]) - int(time.time()) <= 7_200

"""What processes have read and computed."""

import os
from pathlib import Path

from benchmarks.processes import computed_s, read_bytes


def test_bytes_that_a_process_reads_are_counted(tmp_path: Path) -> None:
    """Cached ones, too."""
    file = tmp_path / "file"
    file.write_bytes(bytes(1_000_000))
    before = read_bytes(os.getpid())
    file.read_bytes()
    assert read_bytes(os.getpid()) - before >= 1_000_000
    assert computed_s(os.getpid()) > 0

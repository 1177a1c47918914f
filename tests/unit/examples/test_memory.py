import os
import subprocess
import sys
from pathlib import Path

from pipeline.examples.memory import descendants, resident_bytes


def process(proc: Path, pid: int, parent: int, kilobytes: int, *, rollup: bool) -> None:
    """A process as in `/proc`, with a name that is hard to parse."""
    folder = proc / str(pid)
    folder.mkdir()
    (folder / "stat").write_text(f"{pid} (a ) b) S {parent} 1 1 0")
    if rollup:
        (folder / "smaps_rollup").write_text(f"Rss: 999999 kB\nPss: {kilobytes} kB\n")
    (folder / "status").write_text(f"Name: x\nVmRSS:\t{kilobytes} kB\n")


def test_all_descendants_are_counted_and_others_are_not(tmp_path: Path) -> None:
    """The sum is over the whole tree below the root, whichever file has the size."""
    process(tmp_path, 1, 0, 1_000, rollup=True)
    process(tmp_path, 10, 1, 7, rollup=True)
    process(tmp_path, 11, 10, 5, rollup=False)
    process(tmp_path, 12, 11, 3, rollup=True)
    process(tmp_path, 13, 1, 100, rollup=True)
    (tmp_path / "self").mkdir()
    assert descendants(10, tmp_path) == (10, 11, 12)
    assert resident_bytes(10, tmp_path) == 15 * 1024


def test_without_proc_the_memory_is_unknown(tmp_path: Path) -> None:
    """The result is None, not zero."""
    assert resident_bytes(10, tmp_path) is None


def test_a_real_child_counts() -> None:
    """With a child of this process the tree has more than without, if the size is known."""
    alone = resident_bytes(os.getpid())
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert (alone is None) == (not Path("/proc/self").exists())
        assert alone is None or child.pid in descendants(os.getpid())
    finally:
        child.communicate(b"\n", timeout=30)

"""Memory of a process and its descendants, as Linux counts it."""

from collections import defaultdict
from pathlib import Path

_PROC = Path("/proc")


class Peak:
    """The largest memory of a process and its descendants in all measurements."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.bytes: int | None = None

    def measure(self) -> None:
        """Measure once."""
        now = resident_bytes(self._root)
        if now is not None:
            self.bytes = max(now, self.bytes or 0)


def resident_bytes(root: int, proc: Path = _PROC) -> int | None:
    """Resident memory of a process and its descendants; None if `/proc` does not contain it.

    Shared pages are counted once: proportional sizes are added if the kernel provides them.

    Args:
        root: the process id to begin with.
        proc: mount point of the process file system.
    """
    if not (proc / str(root)).is_dir():
        return None
    return sum(_size(proc / str(pid)) for pid in descendants(root, proc))


def descendants(root: int, proc: Path = _PROC) -> tuple[int, ...]:
    """A process and all its descendants, in order of their ids."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for folder in proc.iterdir():
        if folder.name.isdecimal() and (parent := _parent(folder)) is not None:
            children[parent].append(int(folder.name))
    found: list[int] = []
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children[pid]
    return tuple(sorted(found))


def _parent(folder: Path) -> int | None:
    """The parent of a process; None if the process ended meanwhile."""
    try:
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name is in brackets and may contain anything, brackets and spaces included.
    return int(stat.rpartition(")")[2].split()[1])


def _size(folder: Path) -> int:
    """Proportional memory of one process in bytes; 0 if it ended meanwhile."""
    for name, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            lines = (folder / name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0

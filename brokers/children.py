"""Child processes of a process, by default of this one; read from /proc or `ps`."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

_PS_WITHIN_S: Final = 10.0


def child_processes(parent: int | None = None) -> tuple[int, ...]:
    """The ids of the running children of a process; without an argument, of this process."""
    table = _from_proc() if sys.platform.startswith("linux") else _from_ps()
    return children_in(table, os.getpid() if parent is None else parent)


def children_in(table: str, parent: int) -> tuple[int, ...]:
    """The running children of a process in lines of `id parent state`; state Z is a zombie."""
    rows = (line.split() for line in table.splitlines())
    return tuple(int(pid) for pid, of, state in rows if int(of) == parent and state[0] != "Z")


def _from_proc() -> str:
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "stat").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # it ended since it was listed
            continue
        # The name, in brackets, may contain any character.
        state, parent, *_ = text.rpartition(")")[2].split()
        lines.append(f"{process.name} {parent} {state}")
    return "\n".join(lines)


def _from_ps() -> str:
    with subprocess.Popen(
        ["/bin/ps", "-A", "-o", "pid=,ppid=,state="], stdout=subprocess.PIPE, text=True
    ) as ps:
        table, _ = ps.communicate(timeout=_PS_WITHIN_S)
    own = str(ps.pid)
    return "\n".join(line for line in table.splitlines() if line.split()[0] != own)

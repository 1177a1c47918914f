"""Ports of this machine: which are free, and which process listens on one that is not."""

import contextlib
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

_LISTENING: Final = "0A"
"""The state in /proc/net/tcp."""
_LSOF_WITHIN_S: Final = 10.0


def free_port() -> int:
    """A port of loopback on which nothing listens now; somebody may take it meanwhile."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def holder_of_port(port: int) -> str | None:
    """The process that listens on a TCP port, as `java, process 4711`.

    None if nobody listens, or if the system does not tell (another user's process).
    """
    pid = _pid_from_proc(port) if sys.platform.startswith("linux") else _pid_from_lsof(port)
    return None if pid is None else f"{_name(pid)}process {pid}"


def listening_inodes(table: str, port: int) -> frozenset[str]:
    """The sockets that listen on a port, by inode, in the text of /proc/net/tcp or tcp6."""
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        local_port = int(fields[1].rpartition(":")[2], 16)
        if local_port == port and fields[3] == _LISTENING:
            found.add(fields[9])
    return frozenset(found)


def _pid_from_proc(port: int) -> int | None:
    inodes: frozenset[str] = frozenset()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if Path(table).exists():
            inodes |= listening_inodes(Path(table).read_text(encoding="ascii"), port)
    links = {f"socket:[{inode}]" for inode in inodes}
    if not links:
        return None
    for process in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        if links & _open_files(process):
            return int(process.name)
    return None


def _open_files(process: Path) -> set[str]:
    """Where a process's file descriptors point; empty if it is gone or not ours to look at."""
    found = set()
    try:
        for descriptor in (process / "fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed since it was listed
                found.add(str(descriptor.readlink()))
    except OSError:
        return set()
    return found


def _pid_from_lsof(port: int) -> int | None:
    lsof = shutil.which("lsof")
    if lsof is None:
        return None
    answer = subprocess.run(  # noqa: S603 - fixed words and a number
        [lsof, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fp"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_LSOF_WITHIN_S,
    )
    found = re.search(r"^p(\d+)", answer.stdout, re.MULTILINE)
    return int(found.group(1)) if found else None


def _name(pid: int) -> str:
    comm = Path(f"/proc/{pid}/comm")
    try:
        return f"{comm.read_text(encoding='utf-8', errors='replace').strip()}, "
    except OSError:
        return ""

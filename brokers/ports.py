"""TCP ports of this machine: choice of a free port, process that listens on a port."""

import contextlib
import random
import re
import shutil
import socket
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Final

from pipeline.errors import EnvironmentProblem

_LOOPBACK: Final = "127.0.0.1"
_LISTENING: Final = "0A"
"""The state in /proc/net/tcp."""
_LSOF_WITHIN_S: Final = 10.0
_CHOICES: Final = range(15_000, 30_000)
"""Below the ephemeral ports of Linux (from 32768) and macOS (from 49152): an outgoing connection
could take a server's port while the server restarts."""


def free_port() -> int:
    """A port of loopback on which nothing listens, reserved for this process until it ends.

    The reservation is a UDP socket bound to the same number, so that runs on one machine never
    choose the same port; programs that do not choose their port here may still take it.

    Raises:
        EnvironmentProblem: no port is free.
    """
    first = random.randrange(len(_CHOICES))
    for port in chain(_CHOICES[first:], _CHOICES[:first]):
        if _reserve(port):
            with socket.socket() as probe, contextlib.suppress(OSError):
                probe.bind((_LOOPBACK, port))
                return port
    raise EnvironmentProblem(
        f"no port from {_CHOICES[0]} to {_CHOICES[-1]} is free", place=_LOOPBACK
    )


def _reserve(port: int) -> bool:
    """Reserve a port until this process ends; False if any process, this one included, has it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reservation:
        try:
            reservation.bind((_LOOPBACK, port))
        except OSError:
            return False
        reservation.detach()  # nothing closes it before the process ends
    return True


def holder_of_port(port: int) -> str | None:
    """The process that listens on a TCP port, as `java, process 4711`.

    None if no process listens, or the system does not reveal it (another user's process).
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
    """Targets of a process's file descriptors; empty if it has ended or belongs to another user."""
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

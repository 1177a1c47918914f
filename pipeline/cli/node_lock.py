"""Lock file that limits a node to one process per data folder."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.embedded.control import folder_problem
from pipeline.errors import RefusedError

_PID_BYTES = 32


@contextmanager
def only_node(data: Path, node: str) -> Iterator[None]:
    """Hold the lock of a node; the operating system releases it when the process ends, even killed.

    Nodes with other names may run in the same folder.

    Raises:
        RefusedError: another process runs this node here; contains its id.
        EnvironmentProblem: the folder cannot be written.
    """
    path = data / f"node-{node}.lock"
    try:
        data.mkdir(parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise folder_problem(data, error) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(lock, _PID_BYTES).decode(errors="replace").strip()
            raise RefusedError(
                f"node {node} runs here already: process {holder or 'unknown'}",
                place=str(data),
                hint="stop it, or give this node another name with --name or MEDUSA_NODE.",
            ) from error
        os.ftruncate(lock, 0)
        os.write(lock, f"{os.getpid()}\n".encode("ascii"))
        yield
    finally:
        os.close(lock)

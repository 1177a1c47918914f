"""Processes of a side and their CPU time, from Linux's /proc."""

import os
from pathlib import Path

from pipeline.examples.memory import descendants

_TICKS = os.sysconf("SC_CLK_TCK")


def java_of(root: int) -> int:
    """Spark's Java process among the descendants of a process."""
    for pid in descendants(root):
        if _command(pid).find(b"org.apache.spark.deploy.SparkSubmit") > 0 and _name(pid) == "java":
            return pid
    raise SystemExit(f"process {root} has no Java process of Spark")


def node_of(root: int) -> int:
    """The node's process among the descendants of `medusa up`."""
    for pid in descendants(root):
        if b"\0node\0start\0" in _command(pid) and b"guard.py" not in _command(pid):
            return pid
    raise SystemExit(f"process {root} has no node")


def kafka_of(root: int) -> int:
    """The broker among the descendants of `medusa up`."""
    return _java_with(b"\0kafka.Kafka\0", root)


def zookeeper_of(root: int) -> int:
    """The ZooKeeper server among the descendants of `medusa up`."""
    return _java_with(b"org.apache.zookeeper.server.", root)


def _java_with(argument: bytes, root: int) -> int:
    for pid in descendants(root):
        if argument in _command(pid) and _name(pid) == "java":
            return pid
    raise SystemExit(f"process {root} has no Java process with {argument.decode()!r}")


def threads_of(pid: int) -> int:
    """Number of threads of a process."""
    try:
        return len(list(Path(f"/proc/{pid}/task").iterdir()))
    except OSError:
        return 0


def own_s(pid: int) -> float:
    """CPU seconds of one process and its ended children."""
    return _ticks(pid) / _TICKS


def computed_s(root: int) -> float:
    """CPU seconds of a process and all its descendants, including ended ones."""
    return sum(_ticks(pid) for pid in descendants(root)) / _TICKS


def written_bytes(root: int) -> int:
    """Bytes that a process and all its descendants that run have caused to be written to disks."""
    return _io(root, "write_bytes")


def read_bytes(root: int) -> int:
    """Bytes that a process and all its descendants that run have read.

    From files, cached or not, and from Java's connections, whose reads are those of files.
    """
    return _io(root, "rchar")


def _io(root: int, counter: str) -> int:
    lines = (line for pid in descendants(root) for line in _text(pid, "io").splitlines())
    found = (line.partition(": ") for line in lines)
    return sum(int(value) for name, _, value in found if name == counter)


def _ticks(pid: int) -> int:
    """CPU ticks of a process and its ended children; 0 if it has ended meanwhile."""
    # The name is in parentheses with any characters; the state follows, then numbers.
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])


def _name(pid: int) -> str:
    return _text(pid, "comm").strip()


def _command(pid: int) -> bytes:
    return _text(pid, "cmdline").encode()


def _text(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

"""CPU time of a node's processes and their Kafka clients, from Linux's /proc."""

import os
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

from pipeline.metering.readings import ProcessTimes

_PROC: Final = Path("/proc")
_CLIENTS: Final = "rdk:"
"""Beginning of the names of librdkafka's threads."""
_NS: Final = 1_000_000_000
NOTHING: Final = ProcessTimes(0, 0, 0, 0, 0)


def can_meter(proc: Path = _PROC) -> bool:
    """Whether the system has the files that are read here."""
    own = proc / str(os.getpid())
    return (own / "task" / own.name / "children").exists()


class ProcessReader:
    """Reads the CPU time of this process and its descendants.

    A counter never decreases: that of threads and processes that have ended is kept.

    Args:
        java: process id of Spark's Java process, a child of this one.
        proc: mount point of the process file system.
    """

    def __init__(self, java: int, proc: Path = _PROC) -> None:
        self._java = java
        self._proc = proc
        self._own = os.getpid()
        self._ticks_ns = _NS // os.sysconf("SC_CLK_TCK")
        self._clients: dict[int, int] = {}
        self._ended_ns = 0
        self._is_client: dict[int, bool] = {}
        self._last = NOTHING

    def read(self) -> ProcessTimes:
        """The CPU time up to now."""
        found = ProcessTimes(
            node_ns=time.process_time_ns(),
            clients_ns=self._clients_ns(),
            java_ns=self._own_ns(self._java),
            functions_ns=self._below_ns(self._java),
            other_ns=self._below_ns(self._own, without=self._java),
        )
        names = [one.name for one in fields(ProcessTimes)]
        last = self._last
        self._last = ProcessTimes(*(max(getattr(found, n), getattr(last, n)) for n in names))
        return self._last

    def _clients_ns(self) -> int:
        """CPU time of all threads of Kafka clients that were seen, also those that have ended."""
        tasks = self._proc / str(self._own) / "task"
        there = {int(task.name) for task in _listed(tasks)}
        self._is_client = {
            task: self._is_client[task]
            if task in self._is_client
            else _text(tasks / str(task) / "comm").startswith(_CLIENTS)
            for task in there
        }
        for ended in self._clients.keys() - there:
            self._ended_ns += self._clients.pop(ended)
        for task, is_client in self._is_client.items():
            if is_client:
                self._clients[task] = sum(_ticks(tasks / str(task))[:2]) * self._ticks_ns
        return self._ended_ns + sum(self._clients.values())

    def _own_ns(self, pid: int) -> int:
        """CPU time of a process without its children."""
        return sum(_ticks(self._proc / str(pid))[:2]) * self._ticks_ns

    def _below_ns(self, pid: int, without: int = 0) -> int:
        """CPU time of all descendants of a process, with those that have ended."""
        ticks = sum(_ticks(self._proc / str(pid))[2:])
        waiting = [child for child in self._children(pid) if child != without]
        while waiting:
            child = waiting.pop()
            ticks += sum(_ticks(self._proc / str(child)))
            waiting += self._children(child)
        return ticks * self._ticks_ns

    def _children(self, pid: int) -> Iterator[int]:
        for task in _listed(self._proc / str(pid) / "task"):
            yield from map(int, _text(task / "children").split())


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _ticks(folder: Path) -> tuple[int, ...]:
    """User and system time of a process or thread, and the same of its ended children, in ticks."""
    # The name is in parentheses with any characters; the state follows, then numbers.
    found = _text(folder / "stat").rpartition(")")[2].split()
    return tuple(map(int, found[11:15])) or (0, 0, 0, 0)


def _text(path: Path) -> str:
    """The text of a file; empty if its process has ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""

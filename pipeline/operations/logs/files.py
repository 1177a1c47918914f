"""Log files of the nodes on this machine: last entries, and a tail of new ones."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.operations.logs.entries import (
    EntryParser,
    LogEntry,
    entries_of_node,
    entries_of_spark,
    merged,
)

_POLL_S = 0.3


@dataclass(frozen=True, slots=True)
class LogFile:
    """A log file and the parser of its entries; the file may be missing."""

    file: Path
    read: EntryParser

    def entries(self) -> Iterator[LogEntry]:
        """All entries of the file."""
        if self.file.is_file():
            with self.file.open(encoding="utf-8", errors="replace") as stream:
                yield from self.read(stream)

    @property
    def size(self) -> int:
        """The size of the file in bytes; 0 if it is missing."""
        return self.file.stat().st_size if self.file.is_file() else 0


def node_logs(folder: Path) -> tuple[LogFile, ...]:
    """The log of each node, and the output of its process if `up` started it: NODE.out.

    Raises:
        RefusedError: the folder has no log of a node.
    """
    nodes = [file.stem.removeprefix("node-") for file in sorted(folder.glob("node-*.log"))]
    if not nodes:
        raise RefusedError(
            "there is no log of a node here",
            place=str(folder),
            hint="logs are on the machine where the node runs; is it up? try `medusa up`.",
        )
    return (
        *(LogFile(folder / f"node-{node}.log", partial(entries_of_node, node)) for node in nodes),
        *(LogFile(folder / f"{node}.out", partial(entries_of_spark, node)) for node in nodes),
    )


def last_entries(
    logs: Sequence[LogFile], count: int, matches: Callable[[LogEntry], bool]
) -> tuple[LogEntry, ...]:
    """The last matching entries of several logs, by time, at most `count`."""
    lasts = [deque(filter(matches, log.entries()), maxlen=count) for log in logs]
    return tuple(deque(merged(lasts), maxlen=count))


def new_entries(logs: Sequence[LogFile], clock: Clock) -> Iterator[LogEntry]:
    """Tail of entries added from now on, without end; blocks.

    Entries of one poll are ordered by time. A rotated file is read from its beginning.
    """
    done = {log.file: log.size for log in logs}
    while True:
        new: list[list[LogEntry]] = []
        for log in logs:
            size = log.size
            if size < done[log.file]:
                done[log.file] = 0
            if size == done[log.file]:
                continue
            with log.file.open("rb") as stream:
                stream.seek(done[log.file])
                added = stream.read(size - done[log.file])
            whole = added.rfind(b"\n") + 1
            done[log.file] += whole
            new.append(list(log.read(added[:whole].decode("utf-8", "replace").splitlines())))
        yield from merged(new)
        clock.sleep(_POLL_S)

"""Parser of log entries, of nodes and of Spark in the same processes.

A node writes its own log, in the format of `cli/node_log.py`. Spark writes to the standard error of
the node's process, in its default pattern, with times of the machine's zone; `medusa up` redirects
that to a file. An entry begins with a time; lines without one belong to the entry above.
"""

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum

from pipeline.clock import rfc3339

_NAME = r"[a-z][a-z0-9_]*"
_BY_NODE = re.compile(
    rf"(\d{{4}}-\d\d-\d\d[T ]\S*) (?:([A-Z]+) )?(?:\[({_NAME})\.({_NAME})\] ?)?(.*)", re.DOTALL
)
_BY_SPARK = re.compile(r"(\d\d/\d\d/\d\d \d\d:\d\d:\d\d) ([A-Z]+) (.*)", re.DOTALL)
_QUERY = re.compile(rf"\b({_NAME})\.({_NAME})(?:\.\w+)+ \[id = ")
"""The name of a query in Spark's entries: fragment, epoch and kind."""


class LogSource(Enum):
    """The writer of an entry."""

    NODE = "node"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of a log.

    Args:
        time: RFC 3339 in UTC; "": it has none.
        level: such as INFO; "": it has none.
        node: the node in whose process it was written.
        network: the network of its fragment; "": none.
        fragment: the fragment that it concerns; "": none.
        message: its text, of one line or several.
    """

    time: str
    level: str
    node: str
    source: LogSource
    network: str
    fragment: str
    message: str

    @property
    def label(self) -> str:
        """The fragment that it concerns, as network.fragment; "": none."""
        return f"{self.network}.{self.fragment}" if self.fragment else ""

    def concerns(self, name: str) -> bool:
        """Whether it concerns a fragment or network; a fragment's name may omit its network."""
        return bool(self.fragment) and name in {self.fragment, self.label, self.network}

    def __str__(self) -> str:
        label = f"[{self.label}]" if self.fragment else ""
        by = "spark:" if self.source is LogSource.SPARK else ""
        return " ".join(filter(None, (self.time, self.level, label, by, self.message)))


EntryParser = Callable[[Iterable[str]], Iterator[LogEntry]]
"""Parses the lines of a log."""


def entries_of_node(node: str, lines: Iterable[str]) -> Iterator[LogEntry]:
    """Parse a node's own log."""
    for text in _whole(lines, _BY_NODE):
        found = _BY_NODE.fullmatch(text)
        if found is None:
            yield LogEntry("", "", node, LogSource.NODE, "", "", text)
        else:
            time, level, network, fragment, message = (part or "" for part in found.groups())
            yield LogEntry(time, level, node, LogSource.NODE, network, fragment, message)


def entries_of_spark(node: str, lines: Iterable[str]) -> Iterator[LogEntry]:
    """Parse the standard error of a node's process: Spark's entries, and other text."""
    for text in _whole(lines, _BY_SPARK):
        found = _BY_SPARK.fullmatch(text)
        time, level, message = ("", "", text) if found is None else found.groups()
        query = _QUERY.search(message)
        network, fragment = query.groups() if query else ("", "")
        yield LogEntry(_in_utc(time), level, node, LogSource.SPARK, network, fragment, message)


def merged(logs: Sequence[Iterable[LogEntry]]) -> Iterator[LogEntry]:
    """Merge several logs by time; entries of one log keep their order.

    All times have the same format and zone, so they are compared as texts.
    """
    return heapq.merge(*logs, key=lambda entry: entry.time)


def labels(found: Iterable[LogEntry]) -> tuple[str, ...]:
    """Every network.fragment that entries concern, sorted."""
    return tuple(sorted({entry.label for entry in found if entry.fragment}))


def _whole(lines: Iterable[str], begins: re.Pattern[str]) -> Iterator[str]:
    entry: list[str] = []
    for line in lines:
        if entry and begins.match(line):
            yield "\n".join(entry)
            entry = []
        entry.append(line.rstrip("\n"))
    if entry:
        yield "\n".join(entry)


def _in_utc(local: str) -> str:
    """Convert a time of Spark in the machine's zone; "" if invalid, such as the 31st of June."""
    if not local:
        return ""
    try:
        moment = datetime.strptime(local, "%y/%m/%d %H:%M:%S").astimezone(UTC)
    except ValueError:
        return ""
    return rfc3339(int(moment.timestamp()) * 1000)

"""Entries of logs: of nodes, and of Spark in the same processes.

A node writes its own log, in the form of `cli/node_log.py`. Spark writes to the standard error of
the node's process, in its default pattern, with times of the machine's zone; `medusa up` keeps that
in a file. An entry begins with a time; lines without one belong to the entry above.
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
"""How Spark names a query of ours: by fragment, epoch and kind."""


class LogSource(Enum):
    """Who wrote an entry."""

    NODE = "node"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of a log.

    Args:
        time: RFC 3339 in UTC; "": it has none.
        level: such as INFO; "": it has none.
        node: the node in whose process it was written.
        network: the network of the fragment that it is about; "": it is about none.
        fragment: that fragment; "": none.
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
        """The fragment that it is about, as network.fragment; "": none."""
        return f"{self.network}.{self.fragment}" if self.fragment else ""

    def is_about(self, name: str) -> bool:
        """Whether it is about a fragment, named with its network or without, or of that network."""
        return bool(self.fragment) and name in {self.fragment, self.label, self.network}

    def __str__(self) -> str:
        label = f"[{self.label}]" if self.fragment else ""
        by = "spark:" if self.source is LogSource.SPARK else ""
        return " ".join(filter(None, (self.time, self.level, label, by, self.message)))


EntryParser = Callable[[Iterable[str]], Iterator[LogEntry]]
"""Lines of a log to its entries."""


def entries_of_node(node: str, lines: Iterable[str]) -> Iterator[LogEntry]:
    """The entries of a node's own log."""
    for text in _whole(lines, _BY_NODE):
        found = _BY_NODE.fullmatch(text)
        if found is None:
            yield LogEntry("", "", node, LogSource.NODE, "", "", text)
        else:
            time, level, network, fragment, message = (part or "" for part in found.groups())
            yield LogEntry(time, level, node, LogSource.NODE, network, fragment, message)


def entries_of_spark(node: str, lines: Iterable[str]) -> Iterator[LogEntry]:
    """The entries that Spark wrote in the process of a node, and what else was written there."""
    for text in _whole(lines, _BY_SPARK):
        found = _BY_SPARK.fullmatch(text)
        time, level, message = ("", "", text) if found is None else found.groups()
        query = _QUERY.search(message)
        network, fragment = query.groups() if query else ("", "")
        yield LogEntry(_in_utc(time), level, node, LogSource.SPARK, network, fragment, message)


def merged(logs: Sequence[Iterable[LogEntry]]) -> Iterator[LogEntry]:
    """The entries of several logs by their times; those of one log stay in their order.

    All times have one form and zone, so texts compare as times.
    """
    return heapq.merge(*logs, key=lambda entry: entry.time)


def labels(found: Iterable[LogEntry]) -> tuple[str, ...]:
    """Every network.fragment that entries are about, sorted."""
    return tuple(sorted({entry.label for entry in found if entry.fragment}))


def _whole(lines: Iterable[str], begins: re.Pattern[str]) -> Iterator[str]:
    held: list[str] = []
    for line in lines:
        if held and begins.match(line):
            yield "\n".join(held)
            held = []
        held.append(line.rstrip("\n"))
    if held:
        yield "\n".join(held)


def _in_utc(local: str) -> str:
    """A time of Spark's, in the machine's zone; what is none, such as the 31st of June, is left."""
    if not local:
        return ""
    try:
        moment = datetime.strptime(local, "%y/%m/%d %H:%M:%S").astimezone(UTC)
    except ValueError:
        return ""
    return rfc3339(int(moment.timestamp()) * 1000)

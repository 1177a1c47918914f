"""Test cases: a network, a generator of its input, and a reference of its expected results.

A new kind of box or network is one more file in `cases/` and one more line in its table. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.faults.history import Expected, Fate, Value
from tests.faults.letters import Accepted
from tests.faults.values import Columns

AvroSchema = Mapping[str, Any]
INSTANT: AvroSchema = {"type": "long", "logicalType": "timestamp-millis"}


@dataclass(frozen=True, slots=True)
class Fed:
    """One record to send.

    Args:
        stream: of the document.
        partition: of the topic.
        key: as bytes.
        fields: the value before it is encoded; instants are ms.
        fate: the intended treatment.
        spoil: makes an invalid value of the encoded one; None leaves it unchanged.
        clock_ms: offset of its producer's clock; negative if slow.
        older: whether it is encoded by the older schema of its stream.
    """

    stream: str
    partition: int
    key: bytes | None
    fields: Mapping[str, Value]
    fate: Fate = Fate.GOOD
    spoil: Callable[[bytes], bytes | None] | None = None
    clock_ms: int = 0
    older: bool = False


@dataclass(frozen=True, slots=True)
class Stream:
    """An external stream of a case.

    Args:
        name: of the document.
        schema: the network's reader schema.
        event_time: the field of the event time.
        partitions: of its topic.
        older: another version that some producers still use; None: there is none.
    """

    name: str
    schema: AvroSchema
    event_time: str
    partitions: int = 2
    older: AvroSchema | None = None


Reference = Callable[[Accepted], Mapping[str, Iterable[Expected]]]
"""Accepted records → expected results, by box."""


@dataclass(frozen=True, slots=True)
class Case:
    """One network under test.

    Args:
        name: of the case; every run names its network uniquely.
        document: YAML with `{name}` for the network's name; the topic of stream s is `{name}-s`,
            its schema file `s.avsc`, and `silence` is `missing`, so that records sent in time are
            never late, whatever process is down.
        streams: the external ones.
        feed: endless records, from a random generator and the first event time (ms).
        close: records that close all windows, given the event time to reach (ms).
        reference: see there.
        columns: of the results of each checked box.
        settle_ms: event time after the last record at which all results are published.
        per_second: records sent per second.
        files: further files in the document's folder → their text.
    """

    name: str
    document: str
    streams: tuple[Stream, ...]
    feed: Callable[[Random, int], Iterator[Fed]]
    close: Callable[[int], Iterable[Fed]]
    reference: Reference
    columns: Mapping[str, Columns]
    settle_ms: int = 10_000
    per_second: int = 100
    files: Mapping[str, str] = field(default_factory=dict)

    def stream(self, name: str) -> Stream:
        """The external stream of a name."""
        return next(stream for stream in self.streams if stream.name == name)

    def event_ms(self, fed: Fed) -> int | None:
        """The event time of a valid record; None: it is invalid."""
        found = fed.fields[self.stream(fed.stream).event_time]
        return found if fed.fate is not Fate.BAD and isinstance(found, int) else None

    def topic(self, network: str, stream: str) -> str:
        """The topic of an external stream of a network."""
        return f"{network}-{stream}"

"""What a case is: a network, what is fed to it, and what has to come out, computed the simple way.

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
        partition: where to.
        key: as bytes.
        fields: the value before it is encoded; instants are ms.
        fate: what is meant to become of it.
        spoil: makes a bad value of the encoded one; None leaves it as it is.
        clock_ms: by how much its producer's clock is ahead, negative for behind.
        older: whether it is written with the older schema of its stream.
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
        schema: what the network reads with.
        event_time: the field that says when it happened.
        partitions: of its topic.
        older: another version that some producers still write with; None: there is none.
    """

    name: str
    schema: AvroSchema
    event_time: str
    partitions: int = 2
    older: AvroSchema | None = None


Reference = Callable[[Accepted], Mapping[str, Iterable[Expected]]]
"""What was taken in → what has to come out, by box."""


@dataclass(frozen=True, slots=True)
class Case:
    """One network under test.

    Args:
        name: of the case; every run makes a network with a name of its own.
        document: YAML with `{name}` for the network's name; the topic of stream s is `{name}-s`,
            its schema file `s.avsc`, and `silence` is `missing`, so that records that come in time
            are never late, whatever stands still.
        streams: the external ones.
        feed: endless records, from chance and the event time to begin with (ms).
        close: what closes everything, given the event time to reach (ms).
        reference: see there.
        columns: what the rows of each checked box are.
        settle_ms: how far beyond the last record event time has to go for all results to come.
        per_second: how many records are fed in a second.
        files: what lies beside the document, besides its schemas → the text.
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
        """The event time of a record that can be read; None: it is a bad one."""
        found = fed.fields[self.stream(fed.stream).event_time]
        return found if fed.fate is not Fate.BAD and isinstance(found, int) else None

    def topic(self, network: str, stream: str) -> str:
        """Where an external stream of a network stands."""
        return f"{network}-{stream}"

"""What a run recorded, as plain facts: nothing here talks to a server.

A history holds what was sent, what two kinds of readers found afterwards, what a reader saw while
faults struck, and how Kafka's own log files look. The checkers beside this module judge it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from brokers.records import KafkaRecord
from pipeline.ids import FragmentName, StreamName, TopicName

Value = str | int | float | bool | None
Row = tuple[Value, ...]
"""The values of a record in a fixed order of columns; instants are ms since 1970 UTC."""
NAMED = 3
"""So many places or values are named in a message; a history may hold thousands."""


class Kind(Enum):
    """What can be wrong with a history."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    DIFFERENT = "different"
    UNEXPECTED = "unexpected"
    REORDERED = "reordered"
    SCATTERED = "scattered"
    """Records that have an order lie in several partitions, so that nobody can see it."""
    INPUT = "input"
    """The input topic does not hold what was sent: the run itself is not to be trusted."""
    ABORTED = "aborted read"
    CHANGED = "changed after it was read"
    UNSEEN = "committed but not seen"
    GAP = "gap"
    OVERLAP = "overlap"
    ZOMBIE = "zombie"
    UNGUARDED = "outside of a transaction"
    MARKER = "marker"
    PROMISE = "broken promise"
    LATE = "late"
    LETTER = "dead letter"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a record stands."""

    topic: TopicName
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, in words that name topic, partition and offset."""

    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.message}"


class Fate(Enum):
    """What the generator meant a record to be."""

    GOOD = "good"
    MAYBE_LATE = "maybe late"
    """Behind what its partition may have; whether it is late depends on how batches are cut."""
    BAD = "bad"
    """Every fragment that reads it has to refuse it."""
    CLOSING = "closing"
    """Far ahead in event time, so that everything before it is closed; not computed with."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A record of which the broker said where it stands.

    `fields` is the decoded value with instants as ms; None for one that no schema can decode.
    """

    place: Place
    stream: StreamName
    fate: Fate
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    fields: Mapping[str, Value] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """One record that has to come.

    Args:
        row: its values.
        event_ms: its event time, which is its Kafka timestamp.
        sources: records that it follows from; for messages.
        order: the group in which order is promised, and the rank in it; None where none is.
    """

    row: Row
    event_ms: int
    sources: tuple[Place, ...] = ()
    order: tuple[Row, int] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One record of an output, decoded."""

    place: Place
    row: Row
    event_ms: int


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `origin` is None for a result that could not be computed.

    `context` holds the headers of ours without their prefix; `others` the headers that came with
    the record.
    """

    fragment: FragmentName
    place: Place
    origin: Place | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    context: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Why it was refused."""
        return self.context.get("reason", "")

    @property
    def port(self) -> str:
        """The path that refused it; empty: all of them."""
        return self.context.get("port", "")


def place_of(record: KafkaRecord) -> Place:
    """Where a record stands."""
    return Place(record.topic, record.partition, record.offset)


def words(names: Iterable[object]) -> str:
    """The first few of many things in one text, and how many more there are."""
    found = [str(name) for name in names]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return "; ".join(found[:NAMED]) + more

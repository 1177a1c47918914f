"""The recorded history of a run, as plain data.

A history contains the sent records, the records that readers of both isolation levels read
afterwards, those read during the faults, and Kafka's log files. The checkers of this package
verify it.
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
"""Maximum number of places or values in a message; a history may have thousands."""


class Kind(Enum):
    """Kinds of violations in a history."""

    LOST = "lost"
    DUPLICATED = "duplicated"
    DIFFERENT = "different"
    UNEXPECTED = "unexpected"
    REORDERED = "reordered"
    SCATTERED = "scattered"
    """Ordered records are in several partitions, so that their order is not visible."""
    INPUT = "input"
    """The input topic differs from the sent records: the run itself is invalid."""
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
    STATE = "another state"
    FOLLOWER = "follower"
    PAUSE = "pause"
    UNSETTLED = "not settled"
    SETTLED_TWICE = "settled twice"
    DONE = "done mark"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Topic, partition and offset of a record."""

    topic: TopicName
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation; its text contains topic, partition and offset."""

    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.message}"


class Fate(Enum):
    """A record's treatment, as intended by its generator."""

    GOOD = "good"
    MAYBE_LATE = "maybe late"
    """Beyond its partition's lateness; whether it is late depends on the batch boundaries."""
    BAD = "bad"
    """Every fragment that reads it must refuse it."""
    CLOSING = "closing"
    """Of a far later event time, so that all windows before it close; not part of the results."""


@dataclass(frozen=True, slots=True)
class Sent:
    """An acknowledged record and its position.

    `fields` is the decoded value with instants as ms; None for an undecodable one.
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
    """One expected record.

    Args:
        row: its values.
        event_ms: its event time, which is its Kafka timestamp.
        sources: records that it is computed from; for messages.
        order: the group in which order is guaranteed, and the rank in it; None without order.
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

    `context` contains Medusa's headers without their prefix; `others` the original headers of
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
        """The reason of the refusal."""
        return self.context.get("reason", "")

    @property
    def port(self) -> str:
        """The path that refused it; empty: all paths."""
        return self.context.get("port", "")


def place_of(record: KafkaRecord) -> Place:
    """The place of a record."""
    return Place(record.topic, record.partition, record.offset)


def words(names: Iterable[object]) -> str:
    """The first few items as one text, and the number of further ones."""
    found = [str(name) for name in names]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return "; ".join(found[:NAMED]) + more

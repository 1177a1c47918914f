"""The network: one immutable graph of checked, typed boxes and the streams between them.

Everything that reads a network (planner, compiler, rendering, command line) reads this. A `Network`
exists only in checked form: every name resolves, every expression is typed, there is no loop, and
every box knows the columns it writes. `pipeline/network/document.py` makes one from YAML.

A box kind is one frozen dataclass here in spirit, but lives in its own file under
`pipeline/network/boxes/`, beside its parsing and its schema rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Protocol

from pipeline.ids import BoxName, Millis, NetworkName, StreamName, Subject, TopicName
from pipeline.network.types import Columns, DataType, Form


class Silence(Enum):
    """What it means when an external stream sends nothing for `idle_after`."""

    IDLE = "idle"
    """Nothing happens out there: event time goes on with the wall clock."""
    MISSING = "missing"
    """Something is cut off: event time stands still until records come again."""


class Load(Enum):
    """What happens while an external stream still holds records from before a lane's start."""

    ALONG = "along"
    """Event time follows its records while they are read."""
    FIRST = "first"
    """Event time waits until they are all read, so they may come in any order."""


@dataclass(frozen=True, slots=True)
class StartAt:
    """Where a first start begins to read: exactly one of the three.

    `at_ms` is a wall time: the first record whose Kafka timestamp is at or after it.
    """

    position: str
    """`earliest`, `latest` or `time`."""
    at_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class ColumnRef:
    """A column that an expression reads. `side` is empty, or `left` / `right` in a join."""

    name: str
    side: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where in the document an expression stands, so that a failure can be told in its words.

    `field` is such as `where`, `select.toll` or `event_time`; `box` is empty for a stream's.
    """

    box: str = ""
    field: str = ""


NOWHERE = Origin()


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked Spark SQL expression.

    Args:
        text: as the user wrote it.
        sql: Spark SQL that computes it and never raises; columns are back-quoted, and qualified
            as `left`.`x` or `right`.`x` in a join.
        failed: Spark SQL of type boolean, never null: true exactly where evaluating `text` under
            ANSI rules would have raised. None when it cannot.
        type: the result's type.
        nullable: whether the result can be null (a failed evaluation aside).
        columns: what it reads.
        plain: the column, when the expression is nothing but that column.
        millis: whether the result is a TIMESTAMP known to hold whole milliseconds.
        form: that of the column, when the expression is nothing but a column.
        origin: where the user wrote it, whatever box the planner has moved it into.
    """

    text: str
    sql: str
    failed: str | None
    type: DataType
    nullable: bool
    columns: frozenset[ColumnRef]
    plain: ColumnRef | None = None
    millis: bool = False
    origin: Origin = NOWHERE
    form: Form | None = None


def expressions(value: object) -> Iterator[Expression]:
    """Every expression in a box, or in several."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from expressions(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from expressions(getattr(value, field.name))


def columns_read(found: Iterable[Expression]) -> frozenset[str]:
    """The names of the columns that some expressions read."""
    return frozenset(column.name for expression in found for column in expression.columns)


@dataclass(frozen=True, slots=True)
class Computed:
    """A named output column and the expression that computes it."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class ExternalStream:
    """A topic whose producers are not ours.

    Args:
        subject: where the registry keeps the schema.
        schema_json: the reader schema, canonical JSON text of the Avro schema, all fields kept.
        columns: the reader schema's fields as columns.
        event_time: an expression of type TIMESTAMP over the columns.
        lateness_ms: how far behind the newest record of its partition a record may be.
        idle_after_ms: how long a partition at its end is silent before it steps aside.
        ahead_ms: how far event time may lie beyond the record's Kafka timestamp.
    """

    name: StreamName
    topic: TopicName
    subject: Subject
    schema_json: str
    columns: Columns
    event_time: Expression
    lateness_ms: int
    idle_after_ms: int
    silence: Silence
    start: StartAt
    ahead_ms: int
    partitions: int
    """With how many partitions the topic is created if it does not exist."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Fields of the schema that are no columns, each with the reason: general unions and such."""
    retention_ms: int | None = None
    """How long the topic keeps records if it is created; None: as the network says."""
    load: Load = Load.ALONG

    @property
    def event_time_column(self) -> str | None:
        """The column that is the event time, if it is a column as it stands."""
        return self.event_time.plain.name if self.event_time.plain else None


class Box(Protocol):
    """What every kind of box offers to those who do not care which kind it is."""

    @property
    def name(self) -> BoxName:
        """The box's name, which is also the name of the stream it writes."""

    @property
    def kind(self) -> str:
        """`filter`, `map`, `aggregate`, `join`…: the word used in the document."""

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """The streams it reads, in the order of its ports."""

    @property
    def columns(self) -> Columns:
        """What it writes."""

    @property
    def event_time_column(self) -> str | None:
        """The output column that is known to equal the row's event time, if there is one."""

    @property
    def key(self) -> tuple[str, ...]:
        """Output columns that make the Kafka key; empty: the input's key and partition stay."""


class KeyFormat(Enum):
    """How the Kafka keys of an output are written."""

    AVRO = "avro"
    """A record of the key's columns, in the wire format of the schema registry."""
    STRING = "string"
    """The text of the one column, in UTF-8."""
    RAW = "raw"
    """The bytes of the one column; of a whole number as Kafka's own serializers write it."""


@dataclass(frozen=True, slots=True)
class Output:
    """A stream that leaves the network under a topic name of the user's choice."""

    stream: StreamName
    topic: TopicName
    partitions: int
    corrections: bool = False
    """Whether its readers take a later record with the id of an earlier one in its place."""
    key_format: KeyFormat = KeyFormat.AVRO
    retention_ms: int | None = None
    """How long the topic keeps records if it is created; None: as the network says."""


@dataclass(frozen=True, slots=True)
class Limit:
    """How many dead letters of a stream or a box are borne; more of them stop the fragment.

    Args:
        of: the stream or the box.
        most: how many are borne, in one window.
        within_ms: the size of the windows; None: all of time is one.
    """

    of: str
    most: int
    within_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """A checked network. `boxes` are in topological order, ties in the document's order."""

    name: NetworkName
    streams: tuple[ExternalStream, ...]
    boxes: tuple[Box, ...]
    outputs: tuple[Output, ...]
    partitions: int
    """Partitions of derived topics for which the document says nothing."""
    replication: int
    retention_ms: int
    """How long topics that are created keep records, where nothing else is said of one."""
    auto_create: bool
    limits: tuple[Limit, ...] = ()
    """How many dead letters are borne, of the streams and boxes that say so."""

    def by_name(self) -> Mapping[StreamName, "ExternalStream | Box"]:
        """Every stream by its name: the external ones, and the boxes that write the others."""
        found: dict[StreamName, ExternalStream | Box] = {s.name: s for s in self.streams}
        found.update({StreamName(b.name): b for b in self.boxes})
        return found

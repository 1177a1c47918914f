"""The network: one immutable graph of checked, typed boxes and the streams between them.

Everything that reads a network (planner, compiler, rendering, command line) reads this. A `Network`
exists only in checked form: every name resolves, every expression is typed, there is no loop, and
every box has its output columns. `pipeline/network/document.py` makes one from YAML.

A box kind is one frozen dataclass in its own file under `pipeline/network/boxes/`, together with
its parsing and its schema rule.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Protocol

from pipeline.availability import Availability
from pipeline.ids import BoxName, Millis, NetworkName, StreamName, Subject, TopicName
from pipeline.labels import EVERY_NODE, Selector
from pipeline.network.types import Columns, DataType, Form
from pipeline.priority import Priority
from pipeline.reliability import UPSTREAM_BACKUP, Reliability


class Silence(Enum):
    """The meaning of an external stream that sends nothing for `idle_after`."""

    IDLE = "idle"
    """There are no events: event time continues by other inputs, or by the clock."""
    MISSING = "missing"
    """Producers are disconnected: event time stops until records arrive again."""


class Load(Enum):
    """Event time while records from before a lane's start are unread."""

    ALONG = "along"
    """Event time follows its records while they are read."""
    FIRST = "first"
    """Event time waits until they are all read, so they may be in any order."""


@dataclass(frozen=True, slots=True)
class StartAt:
    """Start position of a first start: exactly one of the three.

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
    """The place of an expression in the document, for messages.

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
        columns: the columns that it reads.
        plain: the column, when the expression is nothing but that column.
        millis: whether the result is a TIMESTAMP of whole milliseconds.
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
    """A named output column and its expression."""

    name: str
    expression: Expression


@dataclass(frozen=True, slots=True)
class ExternalStream:
    """A topic whose producers are outside Medusa.

    Args:
        subject: the schema's subject in the registry.
        schema_json: the reader schema, canonical JSON text of the Avro schema, all fields kept.
        columns: the reader schema's fields as columns.
        event_time: an expression of type TIMESTAMP over the columns.
        lateness_ms: how far a record may be behind the newest one of its partition.
        idle_after_ms: how long a partition at its end is silent before it is idle.
        ahead_ms: how far event time may exceed the record's Kafka timestamp.
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
    """The number of partitions of the topic if it is created."""
    unreadable: tuple[tuple[str, str], ...] = ()
    """Fields of the schema that are no columns, each with the reason: general unions and such."""
    retention_ms: int | None = None
    """The retention of the topic if it is created; None: the network's."""
    load: Load = Load.ALONG
    silence_declared: bool = False
    """Whether the document says what silence means, so that no bound of availability decides it."""

    @property
    def event_time_column(self) -> str | None:
        """The column that is the event time, if it is an unchanged column."""
        return self.event_time.plain.name if self.event_time.plain else None


class Box(Protocol):
    """The properties common to all kinds of boxes."""

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
        """Its output columns."""

    @property
    def event_time_column(self) -> str | None:
        """The output column that always equals the row's event time, if there is one."""

    @property
    def key(self) -> tuple[str, ...]:
        """Output columns that make the Kafka key; empty: the input's key and partition stay."""


class KeyFormat(Enum):
    """Format of the Kafka keys of an output."""

    AVRO = "avro"
    """A record of the key's columns, in the wire format of the schema registry."""
    STRING = "string"
    """The text of the one column, in UTF-8."""
    RAW = "raw"
    """The bytes of the one column; a whole number as Kafka's own serializers write it."""


@dataclass(frozen=True, slots=True)
class Output:
    """A stream that is published under a topic name chosen by the user."""

    stream: StreamName
    topic: TopicName
    partitions: int
    corrections: bool = False
    """Whether its readers replace a record by a later one with the same id."""
    key_format: KeyFormat = KeyFormat.AVRO
    retention_ms: int | None = None
    """The retention of the topic if it is created; None: the network's."""
    nodes: Selector | None = None
    """The nodes that its box may run on; None: not declared here."""
    reliability: Reliability | None = None
    """That of its box, or of the branch of a route; None: not declared here."""
    priority: Priority | None = None
    """The same."""
    availability: Availability | None = None
    """The same."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The accepted number of dead letters of a stream or a box; more of them stop the fragment.

    Args:
        of: the stream or the box.
        most: the accepted number in one window.
        within_ms: the size of the windows; None: no windows.
    """

    of: str
    most: int
    within_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BoxSettings:
    """How the fragments that compute a box run, as far as the box declares it.

    Args:
        of: the box, by its name in the document.
        pace_ms: the least time between two batches; None: the network's.
        state_limit_bytes: the size of the state at which no more input is read; None: the
            network's. Always None for a box without state.
        nodes: the nodes that it may run on; None: not declared here.
        reliability: how another node goes on with it; None: not declared here.
        priority: whether it runs if there is not room for all; None: not declared here.
        availability: when tentative results are preferred to none; None: not declared here.
    """

    of: BoxName
    pace_ms: int | None = None
    state_limit_bytes: int | None = None
    nodes: Selector | None = None
    reliability: Reliability | None = None
    priority: Priority | None = None
    availability: Availability | None = None


@dataclass(frozen=True, slots=True)
class Network:
    """A checked network. `boxes` are in topological order, ties in the document's order."""

    name: NetworkName
    streams: tuple[ExternalStream, ...]
    boxes: tuple[Box, ...]
    outputs: tuple[Output, ...]
    partitions: int
    """Default number of partitions of derived topics."""
    replication: int
    retention_ms: int
    """Default retention of created topics."""
    auto_create: bool
    trims_internal: bool = False
    """Whether the topics of streams that only fragments of the network read keep what is needed."""
    limits: tuple[Limit, ...] = ()
    """Limits of dead letters, of the streams and boxes that declare one."""
    pace_ms: int = 0
    """Default of the least time between two batches; 0: none."""
    state_limit_bytes: int | None = None
    """Default limit of the state of a fragment; None: no limit."""
    box_settings: tuple[BoxSettings, ...] = ()
    """Of all boxes of the document; the branches of a route have those of the route."""
    nodes: Selector = EVERY_NODE
    """The nodes that boxes without a placement of their own may run on."""
    apart: tuple[tuple[BoxName, BoxName], ...] = ()
    """Pairs of boxes that are to run on different nodes; each pair and all of them sorted."""
    reliability: Reliability = UPSTREAM_BACKUP
    """That of boxes without one of their own."""
    priority: Priority = Priority.NORMAL
    """The same."""
    availability: Availability | None = None
    """Of fragments none of whose boxes declares one; None: no tentative results."""

    def by_name(self) -> Mapping[StreamName, "ExternalStream | Box"]:
        """Every stream by its name: the external ones, and the boxes that write the others."""
        found: dict[StreamName, ExternalStream | Box] = {s.name: s for s in self.streams}
        found.update({StreamName(b.name): b for b in self.boxes})
        return found

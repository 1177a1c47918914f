"""A plan: fragments, each one Spark query, and topics, as plain data."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.availability import Availability, Policy
from pipeline.ids import FragmentName, NetworkId, StreamName, TopicName
from pipeline.labels import EVERY_NODE, Selector
from pipeline.names import FragmentNames, stream_of_box, tentative_topic
from pipeline.network.boxes.shape import Shape
from pipeline.network.boxes.traits import Traits, traits
from pipeline.network.model import Box, ExternalStream, KeyFormat, Limit
from pipeline.network.types import Columns
from pipeline.priority import Priority
from pipeline.reliability import UPSTREAM_BACKUP, Recovery, Reliability


@dataclass(frozen=True, slots=True)
class DerivedStream:
    """A stream that a fragment writes and that others can read from its topic.

    Its event time is the Kafka timestamp of its records (whole milliseconds); if
    `event_time_column` names a column, that column contains the same instant.
    """

    name: StreamName
    topic: TopicName
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...]
    schema_json: str
    """The value's Avro schema, inferred from `columns`."""
    key_schema_json: str | None
    """The key's Avro schema (a record of the key columns). None if keys have another format, and if
    `key` is empty: the input's key bytes pass, or, if a stateful box made a row of several records,
    the key is null."""
    partitions: int
    """Number of partitions of the topic when created; an existing topic is not changed."""
    corrections: bool = False
    """Whether later records of it may replace earlier ones, by their ids."""
    key_format: KeyFormat = KeyFormat.AVRO
    lateness_ms: int = 0
    """The least lateness of its inputs: its boundary is at least this far behind their newest
    records."""
    tentative: bool = False
    """Whether forks of its readers read its tentative results; its records are identified by the
    ids of results then, and not by their places."""


FragmentInput = ExternalStream | DerivedStream


@dataclass(frozen=True, slots=True)
class Way:
    """A path of records from an input to a port, through stateless boxes.

    Args:
        port: of the stateful box: `left`, `right`, or `only`.
        name: the port, or `left.2` for the second of several paths merged by a union.
        source: the input.
        boxes: from the input to the port.
    """

    port: str
    name: str
    source: StreamName
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Fragment:
    """The part of a network that one Spark query runs.

    `boxes` are in topological order; the last one writes `output`. A box reads the fragment's
    inputs and earlier boxes of the fragment by stream name. At most one box is stateful. The
    fragment is named after its last box.
    """

    names: FragmentNames
    inputs: tuple[FragmentInput, ...]
    boxes: tuple[Box, ...]
    output: DerivedStream
    limits: tuple[Limit, ...] = ()
    """Limits of dead letters, of the inputs and the boxes that it computes."""
    pace_ms: int = 0
    """The least time between two batches; 0: none."""
    state_limit_bytes: int | None = None
    """The size of the state at which its lanes read no more input; None: no limit."""
    nodes: Selector = EVERY_NODE
    """The nodes that it may run on."""
    apart: tuple[FragmentName, ...] = ()
    """Fragments of the network that it is to run apart from, sorted."""
    reliability: Reliability = UPSTREAM_BACKUP
    """How another node goes on with it when its own one fails."""
    recovery: Recovery = Recovery.PRECISE
    """What its readers see of a failure."""
    priority: Priority = Priority.NORMAL
    """Whether it runs while the nodes have too little room for all fragments."""
    availability: Availability | None = None
    """When tentative results are preferred to none; None: never."""

    @property
    def name(self) -> FragmentName:
        """The fragment's name inside its network."""
        return self.names.fragment

    @property
    def may_be_tentative(self) -> bool:
        """Whether it may publish tentative results.

        Those of a box that does not wait are never wrong without an input: it only adds results.
        What it makes of tentative results of an input is as tentative as these.
        """
        return self.is_bounded and (self.shape.waits or bool(self.read_early))

    @property
    def is_bounded(self) -> bool:
        """Whether tentative results are preferred to none, if there can be any."""
        return self.availability is not None and self.availability.policy is not Policy.SUSPEND

    @property
    def read_early(self) -> frozenset[StreamName]:
        """The inputs of which its forks read tentative results."""
        found = (one for one in self.inputs if isinstance(one, DerivedStream) and one.tentative)
        return frozenset(one.name for one in found)

    @property
    def in_order(self) -> bool:
        """Whether a boundary separates its results from those that come later.

        Without state they come as those of its only input do; of several inputs one may be ahead.
        """
        if self.stateful_box is not None:
            return self.traits.in_order
        return len(self.inputs) == 1 and bool(self.read_early)

    @property
    def tentative_topic(self) -> TopicName | None:
        """The topic of its tentative results; None: it publishes none."""
        return tentative_topic(self.output.topic) if self.may_be_tentative else None

    @property
    def identified(self) -> bool:
        """Whether its results have ids: for corrections, or to match them with tentative ones."""
        return self.output.corrections or self.may_be_tentative

    @property
    def derived(self) -> frozenset[StreamName]:
        """The inputs that fragments write."""
        return frozenset(one.name for one in self.inputs if isinstance(one, DerivedStream))

    @property
    def stateful_box(self) -> Box | None:
        """The stateful box, if there is one."""
        return next((box for box in self.boxes if traits(box).stateful), None)

    @property
    def traits(self) -> Traits:
        """Those of the stateful box, or of the last box if there is none."""
        return traits(self._deciding)

    @property
    def shape(self) -> Shape:
        """How event time closes the fragment's state, and releases its results."""
        ways = self.ways
        sources = {one.port: {w.source for w in ways if w.port == one.port} for one in ways}
        return self.traits.shape(self._deciding, sources)

    @property
    def _deciding(self) -> Box:
        return self.stateful_box or self.boxes[-1]

    @property
    def ways(self) -> tuple[Way, ...]:
        """The paths to the stateful box, or through all boxes if there is none."""
        stateful = self.stateful_box
        streams = (StreamName(self.boxes[-1].name),) if stateful is None else stateful.inputs
        ports = ("only",) if len(streams) == 1 else ("left", "right")
        return tuple(
            way
            for port, stream in zip(ports, streams, strict=True)
            for way in _ways(port, tuple(self._branches(stream)))
        )

    def _branches(self, stream: StreamName) -> Iterator[tuple[StreamName, tuple[Box, ...]]]:
        """The inputs that a stream is computed from, each with the boxes between, in order."""
        box = next((box for box in self.boxes if stream_of_box(box.name) == stream), None)
        if box is None:
            yield stream, ()
            return
        for below in box.inputs:
            for source, boxes in self._branches(below):
                yield source, (*boxes, box)


def _ways(port: str, branches: tuple[tuple[StreamName, tuple[Box, ...]], ...]) -> tuple[Way, ...]:
    names = [port] if len(branches) == 1 else [f"{port}.{n + 1}" for n in range(len(branches))]
    return tuple(
        Way(port, name, source, boxes)
        for name, (source, boxes) in zip(names, branches, strict=True)
    )


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that a network needs; `config` are Kafka topic settings.

    It has to exist before the network can run, except one that is created `when_needed`.
    """

    name: TopicName
    partitions: int
    replication: int
    config: tuple[tuple[str, str], ...]
    external: bool
    """Whether it carries an external stream, so that it may exist already."""
    follows: tuple[TopicName, ...] = ()
    """Topics whose largest partition count determines `partitions`: if one of them exists with
    another count, this one is created with that."""
    single_partition: bool = False
    """Whether its records need a total order, so that it may have only one partition."""
    trimmed: bool = False
    """Whether lanes delete its old records; Kafka expires none."""
    when_needed: bool = False
    """Whether it is created when dead letters are first sent again, and not by a deploy."""
    by_need: bool = False
    """Whether its writer removes the records that no fragment needs; Kafka expires none."""
    kept_above_ms: int = 0
    """Its records have to be kept for longer, if Kafka expires them."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the lanes of a network remove of the topics that they write.

    Args:
        letters_ms: the age of dead letters that no rebuild needs.
        by_need: the topics of which they remove the records that no fragment needs.
    """

    letters_ms: int
    by_need: frozenset[TopicName]


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned network."""

    network: NetworkId
    fragments: tuple[Fragment, ...]
    topics: tuple[NewTopic, ...]
    auto_create: bool
    retention_ms: int
    """Default retention of topics; of dead letters, of those that no rebuild needs."""
    notes: tuple[str, ...] = ()
    """Changes of the network by the planner and their reasons, one sentence each, in order."""

    @property
    def kept(self) -> Kept:
        """What its lanes remove of the topics that they write."""
        return Kept(self.retention_ms, frozenset(one.name for one in self.topics if one.by_need))

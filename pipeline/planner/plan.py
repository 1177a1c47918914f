"""What the planner makes of a network: fragments, each one Spark query, as plain data."""

from dataclasses import dataclass

from pipeline.ids import FragmentName, NetworkName, ParticipantId, StreamName, TopicName
from pipeline.names import FragmentNames
from pipeline.network.model import Box, ExternalStream, Limit
from pipeline.network.types import Columns


@dataclass(frozen=True, slots=True)
class DerivedStream:
    """A stream that a fragment writes and others can read from its topic.

    Its event time is the Kafka timestamp of its records (whole milliseconds); when
    `event_time_column` names a column, that column holds the same instant.
    """

    name: StreamName
    topic: TopicName
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...]
    schema_json: str
    """The value's Avro schema, inferred from `columns`."""
    key_schema_json: str | None
    """The key's Avro schema (a record of the key columns). None when `key` is empty: the input's
    key bytes pass, or, where a stateful box made a row of several records, the key is null."""
    partitions: int
    """With how many partitions the topic is created; an existing topic keeps what it has."""
    corrections: bool = False
    """Whether its records carry ids, by which later ones can take their place."""


FragmentInput = ExternalStream | DerivedStream


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
    """How many dead letters are borne, of the inputs and the boxes that it computes."""

    @property
    def name(self) -> FragmentName:
        """The fragment's name inside its network."""
        return self.names.fragment

    @property
    def stateful_box(self) -> Box | None:
        """The one box that keeps state, if there is one."""
        return next((box for box in self.boxes if box.stateful), None)

    @property
    def ports(self) -> tuple[tuple[str, StreamName], ...]:
        """Where records come in, each with its input: at the stateful box, else at the only one."""
        stateful = self.stateful_box
        streams = (StreamName(self.boxes[-1].name),) if stateful is None else stateful.inputs
        names = ("only",) if len(streams) == 1 else ("left", "right")
        return tuple(zip(names, map(self._source, streams), strict=True))

    def _source(self, stream: StreamName) -> StreamName:
        """The input that a stream comes from, through boxes that each read one."""
        boxes = {StreamName(box.name): box for box in self.boxes}
        while stream in boxes:
            (stream,) = boxes[stream].inputs
        return stream


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that has to exist before the network can run; `config` are Kafka topic settings."""

    name: TopicName
    partitions: int
    replication: int
    config: tuple[tuple[str, str], ...]
    external: bool
    """Whether it carries an external stream, so that it may well exist already."""
    follows: tuple[TopicName, ...] = ()
    """Topics whose largest partition count `partitions` repeats: where one of them exists with
    another count, this one is created with that."""
    single_partition: bool = False
    """Whether its records are only right in one order, so that it may not have more than one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A planned network."""

    owner: ParticipantId
    network: NetworkName
    fragments: tuple[Fragment, ...]
    topics: tuple[NewTopic, ...]
    auto_create: bool
    notes: tuple[str, ...] = ()
    """What the planner did to the network and why, one sentence each, in the order it was done."""

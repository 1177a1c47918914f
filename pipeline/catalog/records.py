"""What the catalog keeps, as plain records; every stored form carries a format version.

Desired and observed state are apart: people change what is desired, nodes report what they see.
A field that is added later has a default, which is what its absence means; see `codec.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from pipeline.ids import (
    BoxName,
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkVersion,
    NodeId,
    Offset,
    ParticipantId,
    SchemaGuid,
    SchemaId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.source_ids import Begin
from pipeline.markers.deploys import NO_DEPLOY, DeployId
from pipeline.planner.state import OnChange


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the catalog, which `codec` stores."""


@dataclass(frozen=True, slots=True)
class FormatRecord(Record):
    """In which format the things that are shared may be written; the record's own is the same.

    So a program that is too old for the catalog is too old for this record.
    """

    format: int
    made_by: str = "medusa"


@dataclass(frozen=True, slots=True)
class RevisionRecord(Record):
    """Counts every change of what is deployed or desired, over all networks of a participant."""

    revision: int


@dataclass(frozen=True, slots=True)
class EpochRecord(Record):
    """The last epoch claimed; 0 before the first.

    It stays when the fragment goes: commit markers of an earlier deploy carry epochs too, and a
    new deploy under the same name must not begin below them.
    """

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class StartRecord(Record):
    """A fragment has run since it was deployed: a first commit marker was written.

    Only its owner says so, after that marker is committed. An empty marker topic beside this record
    has lost its markers.

    Args:
        epoch: under which that was.
    """

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class MissingSchemaRecord(Record):
    """A schema id for which the registry answered that there is none."""

    schema: SchemaId


@dataclass(frozen=True, slots=True)
class MissingGuidRecord(Record):
    """A schema's GUID for which the registry answered that there is none."""

    guid: SchemaGuid


@dataclass(frozen=True, slots=True)
class DeployRecord(Record):
    """The topics that deploys of a network were about to create, none of which is done.

    One that was cut off may have created them; the next one then knows whose they are.
    """

    topics: tuple[TopicName, ...]


class DesiredState(Enum):
    """What the owner of a network wants of a fragment."""

    RUNNING = "running"
    STOPPED = "stopped"
    """Its network is undeployed: the next deploy lets it run."""
    PAUSED = "paused"
    """Only `resume` lets it run; deploys go by it."""


class LaneState(Enum):
    """What a node sees of a fragment's stable lane; the words that `status` shows."""

    PENDING = "pending"
    """No node has taken it up yet."""
    STARTING = "starting"
    REBUILDING = "rebuilding"
    """It builds its state from the log before it starts."""
    RUNNING = "running"
    WAITING = "waiting"
    """A server it needs does not answer; it goes on by itself when that comes back."""
    RESTARTING = "restarting"
    """It failed and is waiting for its next try."""
    FAILED = "failed"
    """It failed too often, or must not be started again unasked."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ParticipantRecord(Record):
    """An autonomous owner of nodes."""

    participant: ParticipantId


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A node that is up (ephemeral). When it was started names its life.

    `reads`: the newest format that it understands; it understands all older ones too.
    """

    node: NodeId
    participant: ParticipantId
    host: str
    pid: int
    started_at_ms: Millis
    version: str
    reads: int


Writers = tuple[tuple[TopicId, tuple[FragmentName, ...]], ...]
"""The id of a topic, and the fragments that were deployed to write it, the last one first."""


@dataclass(frozen=True, slots=True)
class NetworkRecord(Record):
    """A deployed network: which of its versions is wanted.

    Args:
        life: made by its first deploy and kept by later ones; `destroy` ends it.
        made_topics: the topics that deploys of this network created for its output and for its
            fragments' own records, sorted; `destroy` removes these and no others.
        writers: Kafka's ids of the topics that its fragments were deployed to write, sorted, each
            with these fragments: the one that was deployed last comes first.
    """

    network: NetworkId
    version: NetworkVersion
    life: NetworkLife
    made_topics: tuple[TopicName, ...]
    writers: Writers


@dataclass(frozen=True, slots=True)
class NetworkVersionRecord(Record):
    """One version of a network, never changed once written.

    Args:
        document: the YAML text as deployed.
        schemas: external stream name → its Avro schema text as deployed, so that the version can be
            planned again without the user's files.
        digest: of everything that decides what runs; equal digests mean nothing to do.
        code: box → the text of the Python file that it names, as deployed.
    """

    network: NetworkId
    version: NetworkVersion
    document: str
    schemas: tuple[tuple[StreamName, str], ...]
    digest: str
    deployed_at_ms: Millis
    code: tuple[tuple[BoxName, str], ...]


class Begun(NamedTuple):
    """Where a stream begins that a fragment has never read, as a deploy has decided.

    Args:
        stream: which one.
        topic_id: of the topic that carries it.
        ranges: per partition the first offset to read, and the end when that was decided.
        skips: as in `Begin`; so is `passes_over`.
        version: with which it was decided; `NO_VERSION`: see `Begin`.
    """

    stream: StreamName
    topic_id: str
    ranges: tuple[tuple[int, Offset, Offset], ...]
    skips: bool
    passes_over: bool
    version: NetworkVersion

    def begin(self, life: NetworkLife) -> Begin:
        """The same as a lane takes it, in a life of the network."""
        return Begin(
            offsets={partition: begin for partition, begin, _ in self.ranges},
            until={partition: end for partition, _, end in self.ranges},
            skips=self.skips,
            passes_over=self.passes_over,
            deploy=DeployId(life, self.version) if self.version else NO_DEPLOY,
        )


Succeeds = tuple[NetworkVersion, TopicId, tuple[FragmentName, ...], tuple[FragmentName, ...]]
"""With which version of its network a fragment got an output topic that another one had written
last, the id of that topic, and all who had written it: those that are gone, and those that write
another topic now."""


@dataclass(frozen=True, slots=True)
class FragmentRecord(Record):
    """What a fragment should be.

    Args:
        version: the network version that last changed this fragment.
        digest: of the fragment's plan; a lane restarts only when it changes.
        topic_ids: the Kafka topic ids (UUIDs) seen at deploy: a topic deleted and made again is
            another topic.
        choice: what the user chose for its state, and for which life of its lane: once that is
            over, the choice is done. None: to go on with the state, exactly.
        begins: where it begins to read topics that it has never read, as deploys have decided.
            Once a topic is read, this is done.
        succeeds: the other fragments that have written its output; once it has begun anew, this
            is done. None: it is the one that wrote it last.
    """

    network: NetworkId
    fragment: FragmentName
    version: NetworkVersion
    desired: DesiredState
    digest: str
    topic_ids: tuple[tuple[TopicName, str], ...]
    choice: tuple[OnChange, Incarnation] | None
    begins: tuple[Begun, ...]
    succeeds: Succeeds | None

    def decided(self, life: NetworkLife) -> Mapping[StreamName, Begin]:
        """Where its streams begin, as a lane takes it, in a life of the network."""
        return {begun.stream: begun.begin(life) for begun in self.begins}


@dataclass(frozen=True, slots=True)
class OwnerRecord(Record):
    """Who owns a fragment. Changed only by compare-and-set; each claim raises the epoch by one.

    Args:
        life: when the node was started, as its record says.
    """

    node: NodeId
    participant: ParticipantId
    epoch: Epoch
    claimed_at_ms: Millis
    life: Millis

    def is_of(self, node: NodeRecord) -> bool:
        """Whether this life of a node made the claim."""
        return (self.node, self.life) == (node.node, node.started_at_ms)


@dataclass(frozen=True, slots=True)
class FragmentStatus(Record):
    """What the owner of a fragment last saw.

    Args:
        life: when the node was started, as its record says.
        records_in: records read from the inputs since the lane's first start.
        records_out: stable records written since the lane's first start.
        lag_records: offsets between the finished positions and the ends of the inputs; None as
            long as nobody measures them.
        lag_ms: how long ago the oldest record that is not finished was written; 0 when none is,
            None when nobody measures it.
        boundary_ms: the boundary last published for the output.
        dead_letters: written since the lane's first start.
        late_dropped: rows that Spark dropped as late since the lane's first start.
        skipped: records of a time that was settled before their source was first read.
        rebuild_since_ms: when the rebuild of the state began that is under way; None: none is.
        rebuild_offsets: how many offsets it has to read.
        rebuild_read: how many records it has read.
        held_by: the input that holds event time back; empty: none does.
        held_ms: by how much, against the furthest of the others; None: nothing is known of it.
        held_since_ms: since when.
        held_silent_since_ms: since when nothing has come in that input; None: it is not silent.
        steps_ms: how far event time is behind its inputs, since it goes on in steps; None: it does
            not.
    """

    network: NetworkId
    fragment: FragmentName
    node: NodeId
    epoch: Epoch
    state: LaneState
    reported_at_ms: Millis
    life: Millis
    records_in: int
    records_out: int
    lag_records: int | None
    lag_ms: int | None
    boundary_ms: Millis | None
    dead_letters: int
    late_dropped: int
    skipped: int
    restarts: int
    batch_ms: int
    last_error: str
    inputs: tuple[tuple[TopicName, int], ...]
    """Lag in records per input topic, as far as it is measured."""
    rebuild_since_ms: Millis | None
    rebuild_offsets: int
    rebuild_read: int
    held_by: str
    held_ms: int | None
    held_since_ms: Millis | None
    held_silent_since_ms: Millis | None
    steps_ms: int | None

    def is_of(self, node: NodeRecord) -> bool:
        """Whether this life of a node reported it."""
        return (self.node, self.life) == (node.node, node.started_at_ms)

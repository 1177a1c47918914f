"""Records of the catalog; every stored form contains a format version.

Desired and observed state are separate: users change desired state, nodes report observed state.
A field that is added later has a default, the value of a record without it; see `codec.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from pipeline.ids import (
    BoxName,
    Epoch,
    FragmentId,
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
from pipeline.lanes.follower_phases import LEVEL, FollowerPhase
from pipeline.lanes.source_ids import Begin
from pipeline.markers.deploys import NO_DEPLOY, DeployId
from pipeline.planner.state import OnChange
from pipeline.priority import Priority
from pipeline.reliability import AMNESIA, Reliability, with_active_standbys, with_passive_standbys

DEFAULT_CAPACITY = 100


@dataclass(frozen=True, slots=True)
class Record:
    """A value of the catalog, encoded by `codec`."""


@dataclass(frozen=True, slots=True)
class FormatRecord(Record):
    """The newest format that shared records may be written in; this record itself is in it.

    So a program that is too old for the catalog cannot read this record either.
    """

    format: int
    made_by: str = "medusa"


@dataclass(frozen=True, slots=True)
class RevisionRecord(Record):
    """Counter of all deploys, removals and changes of desired state of a participant's networks."""

    revision: int


@dataclass(frozen=True, slots=True)
class EpochRecord(Record):
    """The last epoch claimed; 0 before the first.

    It stays when the fragment is removed: commit markers of an earlier deploy contain epochs too,
    and a new deploy of the same name must not begin below them.
    """

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class StartRecord(Record):
    """A fragment has run since it was deployed: a first commit marker was written.

    Written by its owner only, after that marker is committed. If this record exists and the marker
    topic is empty, markers were lost.

    Args:
        epoch: the owner's epoch.
    """

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class MissingSchemaRecord(Record):
    """A schema id that the registry does not contain."""

    schema: SchemaId


@dataclass(frozen=True, slots=True)
class MissingGuidRecord(Record):
    """A schema GUID that the registry does not contain."""

    guid: SchemaGuid


@dataclass(frozen=True, slots=True)
class DeployRecord(Record):
    """The topics that unfinished deploys of a network were about to create.

    An interrupted deploy may have created them; by this record the next one identifies them as the
    network's.
    """

    topics: tuple[TopicName, ...]


class DesiredState(Enum):
    """The state of a fragment that users request."""

    RUNNING = "running"
    STOPPED = "stopped"
    """Its network is undeployed: the next deploy starts it."""
    PAUSED = "paused"
    """Only `resume` starts it; deploys do not."""


@dataclass(frozen=True, slots=True)
class ParticipantRecord(Record):
    """An autonomous owner of nodes."""

    participant: ParticipantId


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A node that is up (ephemeral). Its start time identifies its life.

    Args:
        reads: the newest format that it can read; it can read all older ones too.
        labels: by which placements select it, sorted by key.
        capacity: how much it can do, compared with other nodes; 0: nothing, as long as others can.
        most_fragments: how many fragments may run on it at the same time; 0: any number.
    """

    node: NodeId
    participant: ParticipantId
    host: str
    pid: int
    started_at_ms: Millis
    version: str
    reads: int
    labels: tuple[tuple[str, str], ...] = ()
    capacity: int = DEFAULT_CAPACITY
    most_fragments: int = 0


@dataclass(frozen=True, slots=True)
class DrainedRecord(Record):
    """The drained nodes of a participant, sorted by name, each with the time since when."""

    nodes: tuple[tuple[NodeId, Millis], ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A move of a fragment to a node that a user has asked for.

    It is valid for one ownership of one version, and for one life of the target, whose follower is
    in its memory: any claim, any deploy, and a restart of the target end it.

    Args:
        network: of the fragment.
        life: of the network.
        fragment: which one.
        version: the version of its network that last changed it.
        source: the node that owns it.
        epoch: of that ownership.
        to: the node that is to own it.
        to_life: the start time of that node, as in its record.
        asked_at_ms: when it was asked for.
        until_ms: when it ends if it is not done, by the clock that `asked_at_ms` is of: nodes
            measure the time in between by their own clocks.
        is_ready: whether a follower on the target has repeated all that the owner has written:
            the owner stops after its batch, and releases the fragment.
        problem: why the last try of the follower has failed; empty: it has not.
    """

    network: NetworkId
    life: NetworkLife
    fragment: FragmentName
    version: NetworkVersion
    source: NodeId
    epoch: Epoch
    to: NodeId
    to_life: Millis
    asked_at_ms: Millis
    until_ms: Millis
    is_ready: bool
    problem: str

    @property
    def id(self) -> FragmentId:
        """Id of the fragment."""
        return FragmentId(self.network, self.fragment)

    @property
    def within_s(self) -> float:
        """After which time it ends if it is not done."""
        return (self.until_ms - self.asked_at_ms) / 1_000

    @property
    def as_asked(self) -> "Transfer":
        """The move as it was asked for, however far it is."""
        return replace(self, is_ready=False, problem="")

    def is_same(self, other: "Transfer") -> bool:
        """Whether both are one move, however far it is."""
        return self.as_asked == other.as_asked


@dataclass(frozen=True, slots=True)
class TransfersRecord(Record):
    """The transfers of a participant, sorted by fragment; one for each fragment at most."""

    transfers: tuple[Transfer, ...]

    def of(self, fragment: FragmentId) -> Transfer | None:
        """The transfer of a fragment."""
        return next((one for one in self.transfers if one.id == fragment), None)

    def without(self, fragment: FragmentId) -> "TransfersRecord":
        """All but the transfer of a fragment."""
        return TransfersRecord(tuple(one for one in self.transfers if one.id != fragment))

    def having(self, transfer: Transfer) -> "TransfersRecord":
        """These, with one that replaces another of its fragment."""
        others = self.without(transfer.id).transfers
        return TransfersRecord(tuple(sorted((*others, transfer), key=lambda one: one.id)))


@dataclass(frozen=True, slots=True)
class Standby:
    """The follower of a fragment on one of its secondaries.

    Args:
        network: of the fragment.
        fragment: which one.
        phase: of the follower.
        problem: why its last try has failed; empty: it has not, or was level since.
        since_ms: since when it is so.
        reached_ms: up to when the owner has written what its state contains, by the owner's clock;
            None: it contains all or nearly all of it, or nothing.
        state_bytes: size of the copy of the checkpoint that it has; 0: it has none.
        is_rehearsed: whether the node has rehearsed the fragment as it is now.
    """

    network: NetworkId
    fragment: FragmentName
    phase: FollowerPhase
    problem: str
    since_ms: Millis
    reached_ms: Millis | None = None
    state_bytes: int = 0
    is_rehearsed: bool = False

    @property
    def id(self) -> FragmentId:
        """Id of the fragment."""
        return FragmentId(self.network, self.fragment)

    @property
    def is_level(self) -> bool:
        """Whether it goes on at once if the owner fails."""
        return self.phase in LEVEL

    def is_same(self, other: "Standby") -> bool:
        """Whether nothing has changed but the time, and how far its state is."""
        return self.since(other.since_ms) == replace(
            other, reached_ms=self.reached_ms, state_bytes=self.state_bytes
        )

    def since(self, since_ms: Millis) -> "Standby":
        """The same, since another time."""
        return replace(self, since_ms=since_ms)


@dataclass(frozen=True, slots=True)
class StandbysRecord(Record):
    """The followers on a node that is a secondary of their fragments, by fragment (ephemeral).

    Args:
        life: the node's start time, as in its record.
    """

    life: Millis
    standbys: tuple[Standby, ...]


@dataclass(frozen=True, slots=True)
class TrimRecord(Record):
    """Records of a topic, kept by need, that its writer removes, written before it removes them.

    Args:
        network: of the fragment that writes the topic.
        fragment: which one.
        topic: the topic.
        topic_id: Kafka's id of it.
        before: partition and offset, sorted; records below these may be gone at any moment.
        held: why no more is removed now; empty: nothing prevents it.
        at_ms: when it was written.
    """

    network: NetworkId
    fragment: FragmentName
    topic: TopicName
    topic_id: TopicId
    before: tuple[tuple[int, Offset], ...]
    held: str
    at_ms: Millis

    @property
    def id(self) -> FragmentId:
        """Id of the fragment."""
        return FragmentId(self.network, self.fragment)


Writers = tuple[tuple[TopicId, tuple[FragmentName, ...]], ...]
"""Topic ids, each with the fragments that were deployed to write the topic, the last one first."""


@dataclass(frozen=True, slots=True)
class NetworkRecord(Record):
    """A deployed network and its deployed version.

    Args:
        life: created by its first deploy and kept by later ones; `destroy` ends it.
        made_topics: the topics that deploys of this network created for its output and for its
            fragments' own records, sorted; `destroy` removes these and no others.
        writers: sorted by Kafka's topic id.
        filled_before: the ids of those of them that held records, or boundaries, before a fragment
            of this life was first deployed to write them, sorted.
    """

    network: NetworkId
    version: NetworkVersion
    life: NetworkLife
    made_topics: tuple[TopicName, ...]
    writers: Writers
    filled_before: tuple[TopicId, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkVersionRecord(Record):
    """One version of a network; immutable.

    Args:
        document: the YAML text as deployed.
        schemas: external stream name → its Avro schema text as deployed, so that the version can be
            planned again without the user's files.
        digest: of the plan; versions with equal digests run the same.
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
    """Decision of a deploy: the beginning of a stream that a fragment has never read.

    Args:
        stream: the stream.
        topic_id: of the topic that carries it.
        ranges: per partition the first offset to read, and the end at the time of the decision.
        skips: as in `Begin`; so is `passes_over`.
        version: the version with this decision; `NO_VERSION`: see `Begin`.
    """

    stream: StreamName
    topic_id: str
    ranges: tuple[tuple[int, Offset, Offset], ...]
    skips: bool
    passes_over: bool
    version: NetworkVersion

    def begin(self, life: NetworkLife) -> Begin:
        """The decision in a lane's terms, within a life of the network."""
        return Begin(
            offsets={partition: begin for partition, begin, _ in self.ranges},
            until={partition: end for partition, _, end in self.ranges},
            skips=self.skips,
            passes_over=self.passes_over,
            deploy=DeployId(life, self.version) if self.version else NO_DEPLOY,
        )


Succeeds = tuple[NetworkVersion, TopicId, tuple[FragmentName, ...], tuple[FragmentName, ...]]
"""Succession of a fragment to an output topic that another one wrote last: the version of its
network with which this was deployed, the topic's id, and the other writers: removed ones, and ones
that write another topic now."""


@dataclass(frozen=True, slots=True)
class FragmentRecord(Record):
    """Desired state of a fragment.

    Args:
        version: the network version that last changed this fragment.
        digest: of the fragment's plan; a lane restarts only when it changes.
        topic_ids: the Kafka topic ids (UUIDs) at the deploy: a topic that was deleted and created
            again is another topic.
        choice: the user's choice for its state, and the incarnation of its lane that it applies to:
            it has no effect on later ones. None: continue with the state, exactly.
        begins: decisions of deploys for topics that it has never read; without effect once the
            topic is read.
        succeeds: the other fragments that have written its output; without effect once the fragment
            has begun anew. None: it is the last writer itself.
        begun_anew: the `anew` of its last marker when its version was deployed; a marker with
            another one is of a lane that began too late. None: an earlier program deployed it.
        nodes: the selector of the nodes that may run it; empty: every node.
        apart: fragments of the network that it is to run apart from, sorted.
        cost_us: its estimated cost, as of `estimated_cost_us`; 0: not known.
        active_standbys: number of other nodes that are to repeat its batches.
        passive_standbys: number of other nodes that are to have a copy of its checkpoint; 0 if
            there are active ones.
        checkpoint_every_ms: how often its checkpoint is copied; 0: it is not.
        priority: whether it runs while the nodes have too little room for all fragments.
        amnesia: whether it begins with an empty state if that cannot be continued; False if there
            are secondaries.
        may_be_tentative: whether it has a topic of tentative results.
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
    begun_anew: str | None = None
    nodes: str = ""
    apart: tuple[FragmentName, ...] = ()
    cost_us: int = 0
    active_standbys: int = 0
    passive_standbys: int = 0
    checkpoint_every_ms: int = 0
    priority: Priority = Priority.NORMAL
    amnesia: bool = False
    may_be_tentative: bool = False

    @property
    def reliability(self) -> Reliability:
        """How another node goes on with it when its own one fails."""
        if self.passive_standbys and not self.active_standbys:
            return with_passive_standbys(self.passive_standbys, self.checkpoint_every_ms)
        if self.amnesia and not self.active_standbys:
            return AMNESIA
        return with_active_standbys(self.active_standbys)

    @property
    def is_wanted(self) -> bool:
        """Whether it should run."""
        return self.desired is DesiredState.RUNNING

    @property
    def without_placement(self) -> "FragmentRecord":
        """All of it that decides what its lanes do; where and when they run is no part of that."""
        alone = replace(self, active_standbys=0, passive_standbys=0, checkpoint_every_ms=0)
        alone = replace(alone, amnesia=False, priority=Priority.NORMAL)
        return replace(alone, nodes="", apart=(), cost_us=0)

    def decided(self, life: NetworkLife) -> Mapping[StreamName, Begin]:
        """The beginnings of its streams in a lane's terms, within a life of the network."""
        return {begun.stream: begun.begin(life) for begun in self.begins}


@dataclass(frozen=True, slots=True)
class OwnerRecord(Record):
    """The owner of a fragment. Changed only by compare-and-set; each claim raises the epoch.

    Args:
        life: the node's start time, as in its record.
        rests: whether the fragment has been paused or stopped since: it has no place on its node
            before this claims it again.
    """

    node: NodeId
    participant: ParticipantId
    epoch: Epoch
    claimed_at_ms: Millis
    life: Millis
    rests: bool = False

    def is_of(self, node: NodeRecord) -> bool:
        """Whether the node made the claim in this life."""
        return (self.node, self.life) == (node.node, node.started_at_ms)

"""One table of every topic, group, transactional id, subject and znode name.

Nothing else in the project puts such a name together. Every name that a participant owns begins
with that participant, so that one prefix grants the rights to all of them. Dots separate the parts;
participant, network and box names contain no dot, so that a name can be read back.
"""

from dataclasses import dataclass

from pipeline.ids import (
    BoxName,
    ConnectorName,
    Epoch,
    FragmentId,
    FragmentName,
    GroupName,
    LaneId,
    NetworkId,
    NodeId,
    ParticipantId,
    SchemaHandle,
    StreamName,
    Subject,
    TopicName,
    TransactionalId,
    ZnodePath,
    stable_lane,
)

PRODUCT = "medusa"
NAME_PATTERN = r"[a-z][a-z0-9_]{0,62}"
"""Participants, networks, streams and boxes: lower case, so that names survive every system."""

_REDRIVE = ".redrive"
_EVENTS = f".{PRODUCT}-events"
_HEARTBEATS = f".{PRODUCT}-heartbeats"
_CONNECTORS = f".{PRODUCT}-connectors"
INTERNAL_SUFFIXES = (
    *(".boundaries", ".dlq", ".markers", _REDRIVE, ".tentative"),
    *(_EVENTS, _HEARTBEATS, _CONNECTORS),
)
"""How the names of Medusa's own topics end; no output may be called so."""

READER_GROUP = GroupName(f"{PRODUCT}.reader")
"""Readers of assigned partitions name a group because the driver wants one; it stays empty."""


def derived_topic(network: NetworkId, box: BoxName) -> TopicName:
    """The topic of a derived stream for which the document names none."""
    return TopicName(f"{network.full_name}.{box}")


def events_topic(participant: ParticipantId) -> TopicName:
    """The event log of a participant; one partition."""
    return TopicName(f"{participant}{_EVENTS}")


def heartbeats_topic(participant: ParticipantId) -> TopicName:
    """The heartbeats of a participant's nodes; one partition."""
    return TopicName(f"{participant}{_HEARTBEATS}")


def connectors_topic(participant: ParticipantId) -> TopicName:
    """The positions of a participant's sources; compacted, one partition."""
    return TopicName(f"{participant}{_CONNECTORS}")


@dataclass(frozen=True, slots=True)
class ConnectorNames:
    """Every name that belongs to one connector."""

    participant: ParticipantId
    connector: ConnectorName

    @property
    def dead_letters(self) -> TopicName:
        """What it could not convert, byte for byte."""
        return TopicName(f"{self.participant}.{self.connector}.dlq")

    @property
    def transactional_id(self) -> TransactionalId:
        """Whoever runs it: a second run ends the first."""
        return TransactionalId(f"{self.participant}{_CONNECTORS}.{self.connector}")


def boundaries_topic(topic: TopicName) -> TopicName:
    """Boundary records of the writers of a topic; compacted, key = writer, one partition."""
    return TopicName(f"{topic}.boundaries")


def tentative_topic(topic: TopicName) -> TopicName:
    """Tentative results beside the stable ones of a topic, of a fragment that may have some."""
    return TopicName(f"{topic}.tentative")


def is_redrive(topic: TopicName) -> bool:
    """Whether one of a fragment's own topics is its redrive topic."""
    return topic.endswith(_REDRIVE)


def replay_topic(topic: TopicName, number: int) -> TopicName:
    """Where a replay of what a topic carries goes, if nobody says otherwise; counted from 1."""
    return TopicName(f"{topic}.replay-{number}")


def value_subject(topic: TopicName) -> Subject:
    """The registry subject of a topic's values (Confluent's TopicNameStrategy)."""
    return Subject(f"{topic}-value")


def key_subject(topic: TopicName) -> Subject:
    """The registry subject of a topic's keys."""
    return Subject(f"{topic}-key")


@dataclass(frozen=True, slots=True)
class FragmentNames:
    """Every name that belongs to one fragment."""

    id: FragmentId

    @property
    def network(self) -> NetworkId:
        """The network of the fragment."""
        return self.id.network

    @property
    def fragment(self) -> FragmentName:
        """The fragment, within its network."""
        return self.id.fragment

    @property
    def stable(self) -> "LaneNames":
        """The names of the lane that writes the fragment's output."""
        return LaneNames(stable_lane(self.id))

    @property
    def dead_letters(self) -> TopicName:
        """Records that could not be processed, byte for byte."""
        return TopicName(f"{self.writer}.dlq")

    @property
    def redrive(self) -> TopicName:
        """Dead letters that are sent again, for this fragment alone."""
        return TopicName(f"{self.writer}{_REDRIVE}")

    @property
    def markers(self) -> TopicName:
        """Commit markers; one partition, compacted."""
        return TopicName(f"{self.writer}.markers")

    @property
    def group(self) -> GroupName:
        """The consumer group that mirrors the stable lane's positions for lag tools."""
        return GroupName(self.writer)

    @property
    def redriver(self) -> TransactionalId:
        """Whoever sends dead letters again: a second one fences the first."""
        return TransactionalId(f"{self.writer}{_REDRIVE}")

    def replayer(self, into: TopicName) -> TransactionalId:
        """Whoever replays the fragment into a topic: a second run ends the first."""
        return TransactionalId(f"{self.writer}.replay.{into}")

    @property
    def writer(self) -> str:
        """The name under which the fragment's boundaries are published."""
        return f"{self.network.full_name}.{self.fragment}"


@dataclass(frozen=True, slots=True)
class LaneNames:
    """Every name that belongs to one lane."""

    lane: LaneId

    @property
    def transactional_id(self) -> TransactionalId:
        """One per lane, whoever runs it: that is what lets a new epoch fence an old one."""
        return TransactionalId(f"{FragmentNames(self.lane.fragment).writer}.{self.lane.name}")

    def checkpoint(self, epoch: Epoch) -> str:
        """The checkpoint folder of one epoch, relative to a node's checkpoint root."""
        fragment = self.lane.fragment
        folder = f"{checkpoint_folder(fragment.network)}/{fragment.fragment}/{self.lane.name}"
        return f"{folder}/epoch-{epoch:08d}"


def checkpoint_folder(network: NetworkId) -> str:
    """The folder of a network's checkpoints, relative to a node's checkpoint root."""
    return f"{network.participant}/{network.name}"


def doctor_group(owner: ParticipantId) -> GroupName:
    """A group without members and offsets, to find out whether groups may be looked at."""
    return GroupName(f"{owner}.doctor")


def doctor_transactions(owner: ParticipantId) -> TransactionalId:
    """Begins no transaction: to find out whether one may be begun."""
    return TransactionalId(f"{owner}.doctor")


@dataclass(frozen=True, slots=True)
class Znodes:
    """The paths of the catalog.

    All that a participant owns is below its own path, which is the unit of access control.

    `root` is empty where the store's chroot is ours alone, as with `zookeeper.connect`'s default.
    """

    root: str = f"/{PRODUCT}"

    def format(self) -> ZnodePath:
        """The catalog's format version."""
        return ZnodePath(f"{self.root}/format")

    def participants(self) -> ZnodePath:
        """All participants; changed whenever one is added."""
        return ZnodePath(f"{self.root}/participants")

    def participant(self, participant: ParticipantId) -> ZnodePath:
        """One participant."""
        return ZnodePath(f"{self.participants()}/{participant}")

    def nodes(self, participant: ParticipantId) -> ZnodePath:
        """The nodes of a participant that are up."""
        return ZnodePath(f"{self.participant(participant)}/nodes")

    def node(self, participant: ParticipantId, node: NodeId) -> ZnodePath:
        """One node, ephemeral."""
        return ZnodePath(f"{self.nodes(participant)}/{node}")

    def drained(self, participant: ParticipantId) -> ZnodePath:
        """The nodes of a participant that are drained."""
        return ZnodePath(f"{self.participant(participant)}/drained")

    def transfers(self, participant: ParticipantId) -> ZnodePath:
        """The moves of a participant's fragments that were asked for and are not done."""
        return ZnodePath(f"{self.participant(participant)}/transfers")

    def standbys(self, participant: ParticipantId) -> ZnodePath:
        """How far the followers of each node of a participant are."""
        return ZnodePath(f"{self.participant(participant)}/standbys")

    def standbys_of(self, participant: ParticipantId, node: NodeId) -> ZnodePath:
        """Those of one node, ephemeral."""
        return ZnodePath(f"{self.standbys(participant)}/{node}")

    def loads(self, participant: ParticipantId) -> ZnodePath:
        """The load of each node of a participant."""
        return ZnodePath(f"{self.participant(participant)}/loads")

    def load(self, participant: ParticipantId, node: NodeId) -> ZnodePath:
        """The load of one node, ephemeral."""
        return ZnodePath(f"{self.loads(participant)}/{node}")

    def trims(self, participant: ParticipantId) -> ZnodePath:
        """What was removed of topics that are kept by need."""
        return ZnodePath(f"{self.participant(participant)}/trims")

    def trim(self, network: NetworkId, fragment: FragmentName) -> ZnodePath:
        """What was removed of the output of one fragment."""
        return ZnodePath(f"{self.trims(network.participant)}/{network.name}.{fragment}")

    def networks(self, participant: ParticipantId) -> ZnodePath:
        """All networks of a participant."""
        return ZnodePath(f"{self.participant(participant)}/networks")

    def network(self, network: NetworkId) -> ZnodePath:
        """One network: which version is wanted."""
        return ZnodePath(f"{self.networks(network.participant)}/{network.name}")

    def versions(self, network: NetworkId) -> ZnodePath:
        """All versions of a network's document."""
        return ZnodePath(f"{self.network(network)}/versions")

    def version(self, network: NetworkId, version: int) -> ZnodePath:
        """One version of a network's document with what was planned from it."""
        return ZnodePath(f"{self.versions(network)}/{version:08d}")

    def fragments(self, network: NetworkId) -> ZnodePath:
        """All fragments of a network."""
        return ZnodePath(f"{self.network(network)}/fragments")

    def fragment(self, network: NetworkId, fragment: FragmentName) -> ZnodePath:
        """What one fragment should be."""
        return ZnodePath(f"{self.fragments(network)}/{fragment}")

    def owner(self, network: NetworkId, fragment: FragmentName) -> ZnodePath:
        """Who owns a fragment: node and epoch, by compare-and-set."""
        return ZnodePath(f"{self.fragment(network, fragment)}/owner")

    def status(self, network: NetworkId, fragment: FragmentName) -> ZnodePath:
        """What a fragment's owner last reported."""
        return ZnodePath(f"{self.fragment(network, fragment)}/status")

    def started(self, network: NetworkId, fragment: FragmentName) -> ZnodePath:
        """That a fragment has run since it was deployed."""
        return ZnodePath(f"{self.fragment(network, fragment)}/started")

    def epochs(self, participant: ParticipantId) -> ZnodePath:
        """The counters of epochs; they outlive the fragments."""
        return ZnodePath(f"{self.participant(participant)}/epochs")

    def epoch(self, network: NetworkId, fragment: FragmentName) -> ZnodePath:
        """The last epoch that was ever claimed of a fragment of this name."""
        return ZnodePath(f"{self.epochs(network.participant)}/{network.name}.{fragment}")

    def deploys(self, participant: ParticipantId) -> ZnodePath:
        """Deploys that have begun and are not done."""
        return ZnodePath(f"{self.participant(participant)}/deploys")

    def deploy(self, network: NetworkId) -> ZnodePath:
        """The topics that deploys of a network were about to create."""
        return ZnodePath(f"{self.deploys(network.participant)}/{network.name}")

    def keys(self, participant: ParticipantId) -> ZnodePath:
        """The public keys of a participant."""
        return ZnodePath(f"{self.participant(participant)}/keys")

    def contracts(self, participant: ParticipantId) -> ZnodePath:
        """The contracts of which a participant has signed documents; counts their changes."""
        return ZnodePath(f"{self.participant(participant)}/contracts")

    def contract(self, participant: ParticipantId, partner: str, contract: str) -> ZnodePath:
        """The documents of a contract with a partner that a participant has signed."""
        return ZnodePath(f"{self.contracts(participant)}/{partner}.{contract}")

    def ledgers(self, participant: ParticipantId) -> ZnodePath:
        """A participant's copies of ledgers."""
        return ZnodePath(f"{self.participant(participant)}/ledgers")

    def ledger(self, participant: ParticipantId, partner: str, contract: str) -> ZnodePath:
        """A participant's copy of the ledger of a contract: how far it is; entries are below."""
        return ZnodePath(f"{self.ledgers(participant)}/{partner}.{contract}")

    def ledger_entry(
        self, participant: ParticipantId, partner: str, contract: str, number: int
    ) -> ZnodePath:
        """One entry of a ledger."""
        return ZnodePath(f"{self.ledger(participant, partner, contract)}/{number:010d}")

    def missing_schemas(self) -> ZnodePath:
        """The schema ids that the registry does not know."""
        return ZnodePath(f"{self.root}/missing_schemas")

    def missing_guids(self) -> ZnodePath:
        """The GUIDs of schemas that the registry does not know."""
        return ZnodePath(f"{self.root}/missing_guids")

    def missing_schema(self, schema: SchemaHandle) -> ZnodePath:
        """One schema for which the registry answered that there is none."""
        if isinstance(schema, int):
            return ZnodePath(f"{self.missing_schemas()}/{schema:010d}")
        return ZnodePath(f"{self.missing_guids()}/{schema}")

    def doctor(self) -> ZnodePath:
        """Made and removed again, to find out whether that is allowed."""
        return ZnodePath(f"{self.root}/doctor")

    def registry(self) -> ZnodePath:
        """The schema registry's own subtree."""
        return ZnodePath(f"{self.root}/registry")


def stream_of_box(box: BoxName) -> StreamName:
    """The stream that a box writes carries the box's name."""
    return StreamName(box)

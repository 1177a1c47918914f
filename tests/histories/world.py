"""Environment of a history: cluster, catalog, registry, clock, nodes and observers."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import lru_cache
from random import Random
from typing import Any, Final, Protocol, cast

from brokers.log_reader import LogReader
from brokers.records import KafkaRecord
from brokers.versioned_store import Set
from pipeline.catalog import codec as codec_of_catalog
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.network_steps import bump
from pipeline.catalog.records import FragmentRecord, NetworkRecord
from pipeline.deploy.apply import Servers
from pipeline.errors import MedusaError
from pipeline.ids import (
    Millis,
    NetworkLife,
    SchemaHandle,
    SchemaId,
    SchemaVersion,
    Subject,
    TopicName,
)
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames, Znodes
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment, Plan
from schemas import wire
from schemas.avro import AvroSchema, parse
from schemas.records import RegisteredSchema
from tests.histories.documents import NETWORK, Net, schema_of
from tests.histories.engine import Executed
from tests.histories.folders import Root
from tests.histories.kafka import Kafka, Topics, Transaction
from tests.histories.node import OWNER, START, Around, Node
from tests.histories.turns import Turn
from tests.memory_store import MemoryStore, MemoryTree

NOWHERE_ID = 9_000
"""An unregistered schema id."""

LANE_GOES: Final = (1, 2, 4)
FOLLOWER_GOES: Final = ((0,), (0, 0, 0, 1), LANE_GOES, LANE_GOES, LANE_GOES)
"""How far the thread of a lane gets in a round, and that of a follower in one kind of steps."""


class Clock:
    """Simulated time; a sleep yields to other threads."""

    def __init__(self) -> None:
        self.passed_s = 0.0
        self.meanwhile: Callable[[], None] = lambda: None

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(START + int(self.passed_s * 1_000))

    def monotonic_s(self) -> float:
        """Seconds since the history began."""
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.passed_s += seconds
        self.meanwhile()


_parsed = lru_cache(1_000)(parse)


class Registry:
    """Schemas by subject and by id, without compatibility checks."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[RegisteredSchema]] = {}
        self.texts: dict[SchemaId, str] = {}
        self.undecided: set[SchemaId] = set()

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest version of a subject."""
        return next(iter(reversed(self.subjects.get(subject, []))), None)

    def lookup(self, subject: str, schema_text: str) -> SchemaId | None:
        """The id of a schema, if the subject has it."""
        found = (one.id for one in self.subjects.get(subject, []) if one.text == schema_text)
        return next(found, None)

    def check(self, _subject: str, _schema_text: str) -> tuple[str, ...]:
        """Accept all schemas."""
        return ()

    def register(self, subject: str, schema_text: str) -> SchemaId:
        """Register a schema; idempotent."""
        known = self.lookup(subject, schema_text)
        if known is not None:
            return known
        same = (schema for schema, text in self.texts.items() if text == schema_text)
        schema = next(same, SchemaId(len(self.texts) + len(self.undecided) + 1))
        versions = self.subjects.setdefault(subject, [])
        version = SchemaVersion(len(versions) + 1)
        versions.append(RegisteredSchema(Subject(subject), version, schema, schema_text))
        self.texts[schema] = schema_text
        return schema

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """All versions of a subject."""
        return tuple(self.subjects.get(subject, []))

    def schema_of(self, handle: SchemaHandle) -> AvroSchema | None:
        """The schema of an id."""
        text = self.texts.get(cast("SchemaId", handle))
        return None if text is None else _parsed(text)

    def add_late(self, schema: SchemaId, text: str) -> None:
        """Add a schema whose id existing records contain."""
        self.texts[schema] = text
        self.undecided.add(schema)

    def delete(self, schema: SchemaId) -> None:
        """Delete a schema permanently."""
        self.texts.pop(schema, None)
        self.undecided.add(schema)
        for versions in self.subjects.values():
            versions[:] = [one for one in versions if one.id != schema]


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployed version.

    Args:
        net: the document.
        plan: its plan.
        ids: of all topics at that time.
        versions: by fragment, the version of its last change.
        at_ms: time before its deploy.
        begins: by fragment, start positions of partitions, and their ends at that time.
    """

    net: Net
    plan: Plan
    ids: Mapping[TopicName, str] = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    at_ms: int = 0
    begins: Mapping[str, dict[tuple[str, int], tuple[int, int]]] = field(default_factory=dict)

    def has(self, fragment: Fragment, ids: Mapping[TopicName, str]) -> bool:
        """Whether it contains an equal fragment with the same topics."""
        topics = [stream.topic for stream in fragment.inputs]
        alike = all(self.ids.get(topic) == ids.get(topic) for topic in topics)
        return alike and any(same(fragment, one) for one in self.plan.fragments)


def same(one: Fragment, other: Fragment) -> bool:
    """Whether two plans of a fragment are equivalent."""
    return one == other or fragment_digest(one) == fragment_digest(other)


@dataclass(frozen=True, slots=True)
class Commit:
    """One committed transaction of a lane, as observed.

    `letters_from`: where the dead letters began when its rebuild read them, if that is known.
    """

    life: int
    version: int
    fragment: Fragment
    marker: CommitMarker
    executed: Executed | None
    records: tuple[KafkaRecord, ...]
    letters_from: Mapping[int, int] = field(default_factory=dict)

    @property
    def names(self) -> FragmentNames:
        """The names of the fragment."""
        return self.fragment.names


class Scene(Protocol):
    """Environment of a chain of deploys."""

    life: int
    deployments: dict[tuple[int, int], Deployment]
    servers: Servers
    undecided: set[SchemaId]
    """Schemas that were permanently deleted, or registered after their records."""

    @property
    def kafka(self) -> Topics:
        """The topics, as of the last refresh."""

    def look(self) -> bool:
        """Refresh topics and commits; returns whether there was anything new."""

    def look_at_topics(self) -> None:
        """Look at the topics alone."""

    def destroyed(self) -> None:
        """Called after a destroy: delete checkpoints on the nodes, and start a new life."""


class Sort(Enum):
    """Kinds of invalid records, and the valid kind."""

    GOOD = "good"
    UNKNOWN = "of a schema that nobody registered"
    GARBAGE = "no record at all"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A record to send: the columns of its row."""

    values: Mapping[str, int]
    sort: Sort

    def framed(self, schema: SchemaHandle, body: bytes) -> bytes:
        """Its encoded value; `schema` and `body` are those of a valid one."""
        match self.sort:
            case Sort.GOOD:
                return wire.join(schema, body)
            case Sort.UNKNOWN:
                return wire.join(SchemaId(NOWHERE_ID), body)
            case Sort.GARBAGE:
                return b"garbage"


def draw_record(rng: Random, now_ms: int, row_id: int, *, plain: bool) -> Drawn:
    """A record of any kind; `plain`: a valid one in time."""
    values = {"id": row_id, "k": rng.randrange(2), "v": rng.randrange(6)}
    values["at"] = now_ms - rng.randrange(1_500)
    drawn = 1.0 if plain else rng.random()
    if drawn < 0.08:
        values["at"] = now_ms - rng.randrange(2_000, 16_000)
    elif drawn < 0.16:
        values["at"] = now_ms + rng.randrange(1_500, 9_000)
    elif drawn < 0.18:
        values["at"] = now_ms + 100_000
    sorts = ((0.18, Sort.GOOD), (0.20, Sort.UNKNOWN), (0.22, Sort.GARBAGE), (2.0, Sort.GOOD))
    return Drawn(values, next(sort for below, sort in sorts if drawn < below))


@dataclass
class World:
    """Simulated environment. `history` draws its random decisions."""

    rng: Random
    append_time: bool = False
    shared_folder: bool = True
    life: int = 0
    lives: int = 0
    deployments: dict[tuple[int, int], Deployment] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    zombies: list[Node] = field(default_factory=list)
    unexpired: dict[str, Node] = field(default_factory=dict)
    """Dead nodes whose sessions have not expired."""
    limits: dict[str, int] = field(default_factory=dict)
    """The number of fragments that may run on a node from its next start on; 0, or none: any."""
    watch: Callable[[Commit], None] = lambda _: None
    ended: Callable[[str, Exception], None] = lambda _lane, _error: None
    produced: int = 0
    follower_goes: tuple[int, ...] = LANE_GOES

    def __post_init__(self) -> None:
        self.clock, self.registry = Clock(), Registry()
        self.undecided = self.registry.undecided
        self.kafka = Kafka(self.clock, append_time=self.append_time)
        self.kafka.committed = self._committed
        self.tree = MemoryTree()
        self.catalog = Catalog(self.open_store(), Znodes(""))
        self.catalog.format.ensure(OWNER)
        self.folders: dict[str, Root] = {}
        self.around = Around(
            self.kafka,
            self.registry,
            self.open_store,
            self.clock,
            lambda: self.rng,
            self._ended,
        )
        self.servers = Servers(
            self.catalog,
            self.kafka,
            cast("Any", self.registry),
            self.clock,
            LogReader(self.kafka, 0.0),
            self._new_life,
        )
        self.clock.meanwhile = self.round

    def open_store(self) -> MemoryStore:
        """A session of the catalog's store."""
        return MemoryStore(self.tree)

    def _new_life(self) -> NetworkLife:
        """A new id at each call."""
        self.lives += 1
        return NetworkLife(f"{self.lives:016x}")

    def look(self) -> bool:
        """Return False: the simulation does not run meanwhile."""
        return False

    def look_at_topics(self) -> None:
        """Do nothing: the topics are always current."""

    def destroyed(self) -> None:
        """Delete checkpoints as the command does, here of every node."""
        for root in self.folders.values():
            for fragment in [name for name in root if name.startswith(f"{NETWORK}.")]:
                del root[fragment]
        self.life += 1

    def forget_topic(self, of: FragmentNames, topic: TopicName) -> None:
        """Restore the catalog to a state before a fragment had a topic."""
        store, znodes = self.open_store(), Znodes("")
        paths = znodes.network(of.network), znodes.fragment(of.network, of.fragment)
        network, fragment = (store.get(path) for path in paths)
        revision = store.get(znodes.networks(OWNER))
        assert network is not None
        assert fragment is not None
        assert revision is not None
        deployed = codec_of_catalog.decode(NetworkRecord, network.value, paths[0])
        record = codec_of_catalog.decode(FragmentRecord, fragment.value, paths[1])
        made = tuple(one for one in deployed.made_topics if one != topic)
        ids = tuple(one for one in record.topic_ids if one[0] != topic)
        before = (
            codec_of_catalog.encode(replace(deployed, made_topics=made)),
            codec_of_catalog.encode(replace(record, topic_ids=ids)),
        )
        changed = (
            Set(path, value, was.version)
            for path, value, was in zip(paths, before, (network, fragment), strict=True)
        )
        store.apply((bump(znodes.networks(OWNER), revision), *changed))

    def keep_internal_topics(self) -> None:
        """Set the retention of internal topics as a deploy asks for if they are kept by need."""
        for name, topic in self.kafka.topics.items():
            if name.startswith(f"{OWNER}."):
                topic.config["retention.ms"] = "-1"

    # --- nodes ------------------------------------------------------------------------------------

    def root_of(self, node: str) -> Root:
        """The checkpoints of a node."""
        return self.folders.setdefault("" if self.shared_folder else node, {})

    def start_node(self, name: str) -> None:
        """Start a node's process; the session of the one before it ends."""
        self.clock.passed_s += 1.0
        if before := self.unexpired.pop(name, None):
            before.store.close()
        most = self.limits.get(name, 0)
        self.nodes[name] = Node(name, self.root_of(name), self.around, most)

    def kill_node(self, name: str, *, lose_folder: bool, expires: bool = True) -> None:
        """Kill a node, optionally with its disk; often in the middle of new batches.

        `expires`: whether its session ends now.
        """
        node = self.nodes.pop(name)
        if self.rng.random() < 0.7:
            node.look()
            for turn in node.turns:
                for _ in range(self.rng.randint(0, 3)):
                    node.go(turn)
        node.kill(expires=expires)
        if not expires:
            self.unexpired[name] = node
        if lose_folder:
            self.folders.pop("" if self.shared_folder else name, None)

    def expire(self) -> None:
        """End the sessions of dead nodes."""
        for node in self.unexpired.values():
            node.store.close()
        self.unexpired.clear()

    def lose_session(self, name: str) -> None:
        """Disconnect a node from the catalog permanently; its lanes run until they are fenced."""
        node = self.nodes.pop(name)
        node.store.close()
        self.zombies.append(node)

    def end_zombies(self) -> None:
        """Kill the nodes that were disconnected."""
        for node in self.zombies:
            node.kill()
        self.zombies.clear()

    def round(self, seconds: float = 1.0) -> None:
        """Run all nodes for one round."""
        self.clock.passed_s += seconds
        for node in list(self.nodes.values()):
            node.look()
        for node in self.zombies:
            node.look_at_kafka()
        self._turns()
        for node in self.nodes.values():
            node.process_events()

    def _turns(self) -> None:
        nodes = (*self.nodes.values(), *self.zombies)
        turns = [(node, turn) for node in nodes for turn in node.turns]
        self.rng.shuffle(turns)
        for node, turn in turns:
            goes = self.follower_goes if node.follows(turn) else LANE_GOES
            for _ in range(self.rng.choice(goes)):
                node.go(turn)

    def end(self) -> None:
        """End all threads."""
        for node in (*self.nodes.values(), *self.zombies):
            for turn in node.turns:
                turn.kill()

    def _ended(self, lane: str, error: Exception) -> None:
        self.ended(lane, error)

    # --- records ----------------------------------------------------------------------------------

    def produce(self, topic: str, rng: Random, *, kind: str = "int", plain: bool = False) -> None:
        """Send a record of any kind to an external topic."""
        if topic not in self.kafka.topics:
            self.kafka.create(topic, 2)
        now_ms = self.clock.now_ms()
        self.produced += 1
        schema = self.registry.register(f"{topic}-value", schema_of(kind))
        drawn = draw_record(rng, now_ms, 1 << self.produced, plain=plain)
        value = drawn.framed(schema, json.dumps(drawn.values).encode())
        partition = rng.randrange(len(self.kafka.topics[TopicName(topic)].partitions))
        self.kafka.append(TopicName(topic), None, value, timestamp_ms=now_ms, partition=partition)

    # --- watching ---------------------------------------------------------------------------------

    def _committed(self, transaction: Transaction) -> None:
        turn = transaction.turn
        if turn is None or "settings" not in turn.facts:
            return
        settings = turn.facts["settings"]
        names = settings.fragment.names
        marker = next(
            codec.decode_marker(record.value or b"", "here")
            for record in transaction.records
            if record.topic == names.markers
        )
        known: dict[int, Executed] = turn.facts.get("executed", {})
        executed = known.get(int(marker.batch))
        records = tuple(transaction.records)
        life = turn.facts.setdefault("life", self.life)
        fragment = settings.fragment
        letters_from = turn.facts.get("letters from", {})
        commit = Commit(life, settings.version, fragment, marker, executed, records, letters_from)
        self.watch(commit)


def attempt(do: Callable[[], None]) -> str:
    """Call a function that may be refused; returns the message of the refusal."""
    try:
        do()
    except MedusaError as error:
        return f"{type(error).__name__}: {error}"
    return ""


__all__ = ["Clock", "Commit", "Deployment", "Registry", "Turn", "World", "attempt"]

"""In-memory servers for deploys: the real catalog, the real registry's rules, and Kafka."""

from dataclasses import dataclass, replace
from pathlib import Path

from brokers.log_reader import LogReader
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import KafkaRecord, NewTopicSpec
from pipeline.catalog.catalog import Catalog
from pipeline.deploy.apply import Servers
from pipeline.errors import UnavailableError
from pipeline.ids import (
    Millis,
    NetworkLife,
    ParticipantId,
    SchemaHandle,
    SchemaId,
    SchemaVersion,
    Subject,
    TopicName,
)
from pipeline.names import Znodes
from schemas.administration import Version
from schemas.avro import AvroSchema, parse
from schemas.client import References
from schemas.compatibility import Level, check
from schemas.entries import SchemaUse, StoredVersion, context_of, proposed, qualified
from schemas.records import IncompatibleSchemaError, RegisteredSchema
from schemas.referring import alone, read, written_out
from schemas.registry.config import DEFAULT_CONFIG, Config
from schemas.registry.content import Guid
from schemas.registry.journal import Journal
from schemas.registry.lookup import lookup, numbered, subjects
from schemas.registry.names import DEFAULT, SubjectName
from schemas.registry.prepare import LATEST, Sent
from schemas.registry.refused import IncompatibleError, NoSchemaError, NoSubjectError
from schemas.registry.register import register
from schemas.registry.state import ConfigPut, State
from schemas.registry.state import Version as KeptVersion
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.kafka import create, records

NOW = Millis(1_700_000_000_000)


class TwinClock:
    """Clock that advances only by `sleep`."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now_ms(self) -> Millis:
        """Wall time."""
        return Millis(NOW + int(self.passed_s * 1000))

    def monotonic_s(self) -> float:
        """Seconds since the start of the test."""
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.passed_s += seconds


class WorldKafka(MemoryKafka):
    """In-memory Kafka; `fail_after`: it fails after so many created topics of a request."""

    def __init__(self, clock: TwinClock) -> None:
        super().__init__(clock)
        self.fail_after: int | None = None

    def add(self, name: str, partitions: int = 4, records: int = 0) -> None:
        """Create a topic, with so many records in each partition."""
        self.delete_topics((TopicName(name),))
        create(self, name, partitions=partitions)
        self.fill(name, records)

    def fill(self, name: str, records: int = 1) -> None:
        """Append records until each partition of a topic has so many."""
        topic = TopicName(name)
        for number, partition in enumerate(self.topics[topic].partitions):
            for _ in range(records - len(partition.log)):
                self.append(topic, None, None, partition=number)

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create missing topics; fails after `fail_after`."""
        made: list[TopicName] = []
        for spec in topics:
            if len(made) == self.fail_after and spec.name not in self.topics:
                raise UnavailableError("Kafka does not answer")
            made += super().create_topics((spec,))
        return tuple(made)


class OtherConnection(MemoryKafka):
    """Another connection to a Kafka; subclasses make it fail."""

    def __init__(self, kafka: WorldKafka) -> None:
        super().__init__(kafka.clock)
        self.kafka, self.topics = kafka, kafka.topics


class TwinRegistry:
    """The real registry's rules without HTTP, with the interface of its client."""

    def __init__(self, store: MemoryStore) -> None:
        self._journal = Journal(store, Znodes("").registry())

    @property
    def state(self) -> State:
        """The newest state."""
        return self._journal.newest()

    @property
    def admin(self) -> "TwinAdmin":
        """Its administration interface."""
        return TwinAdmin(self)

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest version."""
        name = SubjectName.parse(subject)
        one = numbered(self.state, name, LATEST)
        return None if one is None else self._shown(subject, one)

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """All versions."""
        name = SubjectName.parse(subject)
        return tuple(self._shown(subject, one) for one in self.state.versions(name))

    def _shown(self, subject: str, one: KeptVersion) -> RegisteredSchema:
        text = self.state.content(one.guid).text
        return RegisteredSchema(Subject(subject), SchemaVersion(one.number), SchemaId(one.id), text)

    def read(
        self, subject: str, schema_text: str, references: References = (), place: str = ""
    ) -> AvroSchema:
        """Parse a schema and its references."""
        return read(proposed(subject, schema_text, references), self.find, place)

    def find(self, use: SchemaUse) -> StoredVersion | None:
        """A stored version."""
        one = numbered(self.state, SubjectName.parse(use.subject), use.version)
        if one is None:
            return None
        content = self.state.content(one.guid)
        return replace(
            proposed(use.subject, content.text, content.references), version=one.number, id=one.id
        )

    def lookup(
        self, subject: str, schema_text: str, references: References = ()
    ) -> SchemaId | None:
        """The id of a registered schema; None: not registered."""
        name, sent = SubjectName.parse(subject), Sent(schema_text, references)
        try:
            one = lookup(self.state, name, sent, normal=False, deleted=False)
        except (NoSubjectError, NoSchemaError):
            return None
        return SchemaId(one.version.id)

    def check(self, subject: str, schema_text: str, references: References = ()) -> tuple[str, ...]:
        """Reasons why a schema is incompatible with its subject."""
        schema = written_out(self.read(subject, schema_text, references), subject)
        versions = self.state.versions(SubjectName.parse(subject))
        texts = [self.state.content(one.guid).text for one in versions]
        config = self.state.configs.get(SubjectName.parse(subject)) or DEFAULT_CONFIG
        return check(config.level or Level.BACKWARD, schema, [parse(text) for text in texts])

    def set_level(self, subject: str, level: Level) -> None:
        """Set the compatibility level of a subject."""
        self._journal.write((ConfigPut(SubjectName.parse(subject), Config(level=level)),))

    def register(self, subject: str, schema_text: str, references: References = ()) -> SchemaId:
        """Register it."""
        name, sent = SubjectName.parse(subject), Sent(schema_text, references)
        try:
            made = register(self.state, name, sent, normal=False, now_ms=NOW)
        except IncompatibleError as error:
            raise IncompatibleSchemaError(subject, error.messages) from error
        if made.changes:
            self._journal.write(made.changes)
        return SchemaId(made.version.id)

    def schema_of(self, handle: SchemaHandle) -> AvroSchema | None:
        """The schema of an id or a GUID."""
        guids = self.state.guids
        guid = guids.get((DEFAULT, handle)) if isinstance(handle, int) else Guid(handle)
        put = None if guid is None else self.state.contents.get(guid)
        return None if put is None else parse(put.content.text)

    def subjects(self) -> tuple[str, ...]:
        """All subjects."""
        return tuple(map(str, subjects(self.state, "", deleted=False)))


@dataclass
class TwinAdmin:
    """The registry's interface for `medusa schema list` and `show`."""

    registry: TwinRegistry

    def subjects(self, prefix: str = "") -> tuple[str, ...]:
        """The subjects that begin with a prefix."""
        return tuple(one for one in self.registry.subjects() if one.startswith(prefix))

    def version_numbers(self, subject: str) -> tuple[int, ...]:
        """The versions of a subject."""
        return tuple(one.version for one in self.registry.readable_versions(subject))

    def version(
        self, subject: str, version: Version, *, resolved: bool = False
    ) -> StoredVersion | None:
        """One version, as stored or with its references inlined."""
        number = LATEST if version == "latest" else version
        found = self.registry.find(SchemaUse(subject, number))
        return alone(found, self.registry.find) if found and resolved else found

    def relative_name(self, subject: str, other: str) -> str:
        """The name of a subject in references of another one."""
        return qualified(other, context_of(subject))

    def by_id(self, schema_id: int) -> StoredVersion | None:
        """The schema with an id."""
        found = self.registry.schema_of(SchemaId(schema_id))
        return StoredVersion("", 0, schema_id, found.text) if found else None


@dataclass
class World:
    """All servers of a test."""

    kafka: WorldKafka
    registry: TwinRegistry
    catalog: Catalog
    store: MemoryStore
    clock: TwinClock
    lives: int = 0

    @classmethod
    def new(cls) -> "World":
        """Empty servers."""
        store = MemoryStore(MemoryTree())
        catalog = Catalog(store, Znodes(""))
        catalog.format.ensure(ParticipantId("local"))
        clock = TwinClock()
        return cls(WorldKafka(clock), TwinRegistry(store), catalog, store, clock)

    @property
    def log(self) -> LogReader:
        """Reader of topics."""
        return LogReader(self.kafka, 1.0)

    def write(self, topic: TopicName, value: bytes) -> None:
        """Append a record to partition 0; creates the topic if it does not exist."""
        if topic not in self.kafka.topics:
            self.kafka.add(topic, 1)
        self.kafka.append(topic, None, value, partition=0)

    def put(self, *given: KafkaRecord) -> None:
        """Append records to partitions, with their offsets and timestamps."""
        for one in given:
            log = self.kafka.partition(one.topic, one.partition).log
            assert one.offset == len(log)
            log.append(one)

    def records(self, topic: TopicName) -> list[KafkaRecord]:
        """The committed records of a topic; none if it does not exist."""
        return records(self.kafka, topic) if topic in self.kafka.topics else []

    @property
    def servers(self) -> Servers:
        """The servers of a deploy."""
        return Servers(self.catalog, self.kafka, self.registry, self.clock, self.log, self.new_life)

    def new_life(self) -> NetworkLife:
        """A numbered life."""
        self.lives += 1
        return NetworkLife(f"life-{self.lives}")


SCHEMA = """\
{"type": "record", "name": "Sighting", "fields": [
  {"name": "car", "type": "string"},
  {"name": "speed", "type": "double"},
  {"name": "seen_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
]}
"""
DOCUMENT = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
  stopped: {filter: sightings, where: speed = 0}
outputs:
  moving: {topic: moving-cars}
  stopped: {topic: stopped-cars}
"""


def write_project(folder: Path, document: str = DOCUMENT, schema: str = SCHEMA) -> Path:
    """Write a small network and its schema to a folder; returns the document's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sighting.avsc").write_text(schema, encoding="utf-8")
    path = folder / "network.yaml"
    path.write_text(document, encoding="utf-8")
    return path

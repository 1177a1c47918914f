"""Connections of a command to in-memory twins."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from brokers.records import KafkaRecord
from pipeline.cli.connections import Connections
from pipeline.cli.session import Opener
from pipeline.clock import Clock
from pipeline.ids import Millis, Offset, TopicName
from pipeline.settings import Settings
from tests.unit.deploy.twins import NOW, TwinKafka, World


@dataclass
class TwinLog:
    """What was sent, as records that can be read."""

    records: list[KafkaRecord] = field(default_factory=list)

    def send(self, topic: TopicName, key: bytes | None, value: bytes | None) -> None:
        """Append a record to partition 0."""
        offset = Offset(sum(r.topic == topic for r in self.records))
        self.records.append(KafkaRecord(topic, 0, offset, NOW, key, value))

    def flush(self, _timeout_s: float) -> None:
        """Nothing is on the way."""


class TwinReader:
    """Gives the records from the assigned offsets on, once."""

    def __init__(self, log: TwinLog) -> None:
        self._log = log
        self.positions: dict[TopicName, dict[int, Offset]] = {}

    def assign(self, starts: Mapping[TopicName, Mapping[int, Offset]]) -> None:
        """Where to begin."""
        self.positions = {topic: dict(offsets) for topic, offsets in starts.items()}

    def poll(self, _timeout_s: float) -> tuple[KafkaRecord, ...]:
        """Everything that is there."""
        found = tuple(
            record
            for record in self._log.records
            if record.offset >= self.positions.get(record.topic, {}).get(record.partition, 1 << 62)
        )
        for record in found:
            self.positions[record.topic][record.partition] = Offset(record.offset + 1)
        return found


class TwinTopics:
    """The twin of Kafka with ends that follow the log."""

    def __init__(self, kafka: TwinKafka, log: TwinLog) -> None:
        self._kafka = kafka
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kafka, name)

    def end_offsets(self, topics: list[TopicName]) -> dict[TopicName, dict[int, Offset]]:
        """As many as were sent."""
        return {t: {0: Offset(sum(r.topic == t for r in self._log.records))} for t in topics}

    def start_offsets(self, topics: list[TopicName]) -> dict[TopicName, dict[int, Offset]]:
        """Nothing was removed."""
        return {topic: {0: Offset(0)} for topic in topics}

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> dict[int, Offset]:
        """The first record at or after a time."""
        before = sum(r.topic == topic and r.timestamp_ms < time_ms for r in self._log.records)
        return {0: Offset(before)}


class TwinConnections:
    """Stands where `Connections` stands."""

    def __init__(self, world: World, log: TwinLog) -> None:
        self.catalog = world.catalog
        self.topics = TwinTopics(world.kafka, log)
        self.registry = world.registry
        self.servers = world.servers
        self._log = log

    def reader(self) -> TwinReader:
        """A reader of the log."""
        return TwinReader(self._log)

    def producer(self) -> TwinLog:
        """The log itself."""
        return self._log

    def close(self) -> None:
        """The twins live on."""


def opener(world: World, log: TwinLog | None = None) -> Opener:
    """Makes connections to this world."""
    shared = log or TwinLog()

    def connect(_settings: Settings, _clock: Clock) -> Connections:
        return cast("Connections", TwinConnections(world, shared))

    return connect

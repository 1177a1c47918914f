"""Connections to in-memory twins."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from brokers.records import KafkaRecord
from pipeline.clock import Deadline
from pipeline.ids import Millis, Offset, ParticipantId, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from pipeline.replay.period import Period
from pipeline.replay.ranges import Range
from pipeline.replay.write import Result
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

    def read_to(self, ends: Mapping[TopicName, Mapping[int, Offset]]) -> Iterator[KafkaRecord]:
        """Everything below the ends."""
        for record in self.poll(0):
            if record.offset < ends.get(record.topic, {}).get(record.partition, 0):
                yield record


class TwinWriter:
    """What it was given is in the log once it is committed."""

    def __init__(self, log: TwinLog) -> None:
        self._log = log
        self._open: list[KafkaRecord] = []

    def start(self, _deadline: Deadline) -> None:
        """Nobody else writes."""

    def begin(self) -> None:
        """Open a transaction."""
        self._open = []

    def send(self, topic: TopicName, key: bytes | None, value: bytes | None, **more: Any) -> None:
        """Add a record; all of them are in partition 0."""
        before = sum(r.topic == topic for r in (*self._log.records, *self._open))
        time_ms = Millis(more["timestamp_ms"])
        record = KafkaRecord(topic, 0, Offset(before), time_ms, key, value, more["headers"])
        self._open.append(record)

    def commit(self, _deadline: Deadline) -> None:
        """Make it visible."""
        self._log.records += self._open


@dataclass
class TwinRecomputer:
    """Computes what it was given; remembers for which ranges and period."""

    made: list[Result] = field(default_factory=list)
    times: dict[Offset, Millis] = field(default_factory=dict)
    asked: list[tuple[tuple[Range, ...], Period]] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)

    def event_time(self, _at: InputPartition, offset: Offset) -> Millis:
        """As it was given."""
        return self.times[offset]

    def left_out(self, ranges: tuple[Range, ...], period: Period) -> dict[str, int]:
        """One record, always."""
        self.asked.append((ranges, period))
        return {"undecodable": 1}

    def results(self, _ranges: tuple[Range, ...], _period: Period) -> Iterator[Result]:
        """As they were given; one of them cannot be computed."""
        yield from self.made
        self.failed["evaluation_failed"] += 1


class TwinTopics:
    """The twin of Kafka with ends that follow the log."""

    def __init__(self, kafka: TwinKafka, log: TwinLog) -> None:
        self._kafka = kafka
        self._log = log
        self.configs: dict[str, str] = {"retention.ms": "604800000", "retention.bytes": "-1"}

    def topic_configs(self, topics: list[TopicName]) -> dict[TopicName, dict[str, str]]:
        """The same for all."""
        return dict.fromkeys(topics, self.configs)

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """What lies below the offsets is gone."""
        self._log.records = [
            r for r in self._log.records if r.topic != topic or r.offset >= before[r.partition]
        ]

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

    def __init__(self, world: World, log: TwinLog, recomputer: TwinRecomputer) -> None:
        self._recomputer = recomputer
        self.participant = ParticipantId("local")
        self.catalog = world.catalog
        self.store = world.store
        self.topics = TwinTopics(world.kafka, log)
        self.registry = world.registry
        self.servers = world.servers
        self._log = log

    def reader(self) -> TwinReader:
        """A reader of the log."""
        return TwinReader(self._log)

    def redriver(self, _names: FragmentNames) -> TwinWriter:
        """Writes into the log."""
        return TwinWriter(self._log)

    def replayer(self, _names: FragmentNames, _into: TopicName) -> TwinWriter:
        """Writes into the log."""
        return TwinWriter(self._log)

    def recomputer(self, _fragment: object, _topic_ids: object) -> TwinRecomputer:
        """The one that was handed in."""
        return self._recomputer

    def producer(self) -> TwinLog:
        """The log itself."""
        return self._log

    def close(self) -> None:
        """The twins live on."""

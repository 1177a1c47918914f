"""Connections to servers in memory."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from brokers.memory_kafka.reader import MemoryReader
from brokers.memory_kafka.writers import MemoryProducer, MemoryTransactions
from pipeline.ids import Millis, Offset, ParticipantId, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from pipeline.replay.period import Period
from pipeline.replay.ranges import Range
from pipeline.replay.write import Result
from tests.unit.deploy.twins import World


@dataclass
class TwinRecomputer:
    """Recomputer with given results; records the ranges and periods of its calls."""

    made: list[Result] = field(default_factory=list)
    times: dict[Offset, Millis] = field(default_factory=dict)
    calls: list[tuple[tuple[Range, ...], Period]] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)

    def event_time(self, _at: InputPartition, offset: Offset) -> Millis:
        """The given time."""
        return self.times[offset]

    def left_out(self, ranges: tuple[Range, ...], period: Period) -> dict[str, int]:
        """Always one record."""
        self.calls.append((ranges, period))
        return {"undecodable": 1}

    def results(self, _ranges: tuple[Range, ...], _period: Period) -> Iterator[Result]:
        """The given results; one more cannot be computed."""
        yield from self.made
        self.failed["evaluation_failed"] += 1


class TwinConnections:
    """The interface of `Connections`, to servers in memory."""

    def __init__(self, world: World, recomputer: TwinRecomputer) -> None:
        self._recomputer = recomputer
        self.participant = ParticipantId("local")
        self.catalog = world.catalog
        self.store = world.store
        self.topics = self.kafka = world.kafka
        self.registry = world.registry
        self.servers = world.servers

    def lookups(self, within_s: float) -> tuple[TopicAdmin, LogReader]:
        """Topics and last records."""
        return self.topics, LogReader(self.topics, within_s)

    def reader(self) -> MemoryReader:
        """A reader of committed records."""
        return self.topics.reader(1.0)

    def redriver(self, names: FragmentNames) -> MemoryTransactions:
        """The writer of a redrive."""
        return self.topics.transactions(names.redriver)

    def replayer(self, names: FragmentNames, into: TopicName) -> MemoryTransactions:
        """The writer of a replay."""
        return self.topics.transactions(names.replayer(into))

    def recomputer(self, _fragment: object, _topic_ids: object) -> TwinRecomputer:
        """The given recomputer."""
        return self._recomputer

    def producer(self, _within_s: float = 1.0) -> MemoryProducer:
        """A producer of single records."""
        return self.topics.producer(1.0)

    def close(self) -> None:
        """Nothing to close: other connections use the same servers."""

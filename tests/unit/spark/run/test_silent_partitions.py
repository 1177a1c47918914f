"""Partitions whose ends are answered, but not their records."""

from collections.abc import Iterable

import pytest

from brokers.kafka_interface import FETCH_WAIT_MS, Isolation, OffsetGoneError, Place
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import Ends as EndsOf
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.next_batch import Batch, Limits
from pipeline.clock import steady_ms
from pipeline.errors import MedusaError, UnavailableError
from pipeline.ids import Offset
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.silent_partitions import AGAIN_MS, EVERY_MS, WITHIN_S, SilentPartitions
from tests.unit.boundaries.support import CARS, at, lane, marker, positions
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

READ, THERE = marker(positions(CARS, 2, 2)), positions(CARS, 4, 5)
SILENT: Place = (CARS.topic, 1)


class Reader(MemoryReader):
    """Gets no records of some partitions."""

    silent: frozenset[Place] = frozenset()

    def assign(self, starts: EndsOf) -> None:
        """Those that are silent stay where they are."""
        self._here = {
            topic: {p: offset for p, offset in there.items() if (topic, p) not in self.silent}
            for topic, there in starts.items()
        }
        self._waiting = {
            topic: {p: offset for p, offset in there.items() if (topic, p) in self.silent}
            for topic, there in starts.items()
        }
        super().assign(self._here)

    def answer(self) -> None:
        """Get the records that were awaited."""
        self._here = {
            topic: {**there, **self._waiting[topic]} for topic, there in self._here.items()
        }
        self._waiting = {topic: {} for topic in self._waiting}
        super().assign(self._here)

    @property
    def positions(self) -> EndsOf:
        """Of all that is assigned."""
        return {
            topic: {**there, **self._waiting[topic]} for topic, there in self._positions.items()
        }


class Kafka(MemoryKafka):
    """Five records in each of two partitions."""

    def __init__(self, silent: Iterable[Place] = ()) -> None:
        super().__init__(TwinClock())
        self.silent = frozenset(silent)
        self.away = False
        self.error: MedusaError | None = None
        self.readers = 0
        self.last: Reader | None = None
        create(self, CARS.topic, partitions=2)
        for partition in (0, 1):
            for _ in range(5):
                self.append(CARS.topic, None, b"", partition=partition)

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> MemoryReader:
        """A reader without records of what is silent."""
        del fetch_wait_ms
        self.readers += 1
        if self.away:
            raise UnavailableError("no broker answers")
        if self.error is not None:
            raise self.error
        found = Reader(self, timeout_s, isolation)
        found.silent = self.silent
        self.last = found
        return found


class World:
    """A lane that has read two records of each partition."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.clock = kafka, kafka.clock
        self.planner = LanePlanner(lane(CARS), self.clock, lambda _: None)
        self.planner.begin(READ, {}, None)
        self.silent = SilentPartitions(kafka, self.planner, self.clock, "speed")
        self.begin_query()

    def begin_query(self) -> None:
        """Begin where the marker ends, with the ends that are answered."""
        self.planner.begin_query(READ, Limits(100))
        ends = {p: Offset(end) for p, end in enumerate((4, 5))}
        self.planner.ends_read(Ends(steady_ms(self.clock), {CARS.topic: ends}))

    def planned(self) -> tuple[int, ...]:
        """Where the next batch ends."""
        self.begin_query()
        found = self.planner.next(0.0)
        assert isinstance(found, Batch)
        return tuple(found.end[at(CARS, p)] for p in range(2))


def test_partitions_without_records_are_not_read() -> None:
    """After a batch that could not be read; the others are read on."""
    world = World(Kafka([SILENT]))
    assert world.planned() == (4, 5)
    begun_s = world.clock.monotonic_s()
    world.silent.find(READ.end, THERE)
    assert world.clock.monotonic_s() - begun_s == pytest.approx(WITHIN_S)
    assert world.planned() == (4, 2)


def test_they_are_asked_again_now_and_then_and_read_on() -> None:
    """The lane that reads the others waits for them only then."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, THERE)
    since = world.planner.observed
    readers = world.kafka.readers
    world.silent.poll()
    assert world.kafka.readers == readers
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    assert world.kafka.readers == readers + 1
    assert world.planned() == (4, 2)
    assert since is not None
    assert world.planner.observed is not None
    assert world.planner.observed[0].silent == since[0].silent
    world.kafka.silent = frozenset()
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    assert world.planned() == (4, 5)
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    assert world.kafka.readers == readers + 2


def test_they_are_asked_again_soon_then_less_often() -> None:
    """A leader that was being elected answers soon; one that hangs for long is asked seldom."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, THERE)
    asked_ms: list[int] = []
    last_ms, readers = steady_ms(world.clock), world.kafka.readers
    while len(asked_ms) < 6:
        world.clock.sleep(0.1)
        before_ms = steady_ms(world.clock)
        world.silent.poll()
        if world.kafka.readers > readers:
            readers = world.kafka.readers
            asked_ms.append(before_ms - last_ms)
            last_ms = steady_ms(world.clock)
    expected = (AGAIN_MS, 2 * AGAIN_MS, 4 * AGAIN_MS, 8 * AGAIN_MS, EVERY_MS, EVERY_MS)
    assert asked_ms == pytest.approx(expected, abs=100)
    world.kafka.silent = frozenset()
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    world.kafka.silent = frozenset([SILENT])
    world.silent.find(READ.end, THERE)
    world.kafka.silent = frozenset()
    world.clock.sleep(AGAIN_MS / 1_000)
    world.silent.poll()
    assert world.planned() == (4, 5)


def test_only_partitions_of_the_batch_are_asked() -> None:
    """One that it did not read says nothing about it."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, positions(CARS, 4, 2))
    assert world.planned() == (4, 5)


def test_without_any_answer_nothing_is_left_out() -> None:
    """Then the ends are not answered either."""
    world = World(Kafka([SILENT]))
    world.kafka.away = True
    world.silent.find(READ.end, THERE)
    assert world.planned() == (4, 5)


def test_what_is_left_out_remains_so_while_kafka_does_not_answer() -> None:
    """It says nothing about the partition; the next request may."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, THERE)
    world.kafka.away = True
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    world.silent.find(READ.end, positions(CARS, 4, 2))
    assert world.planned() == (4, 2)
    world.kafka.away, world.kafka.silent = False, frozenset()
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    assert world.planned() == (4, 5)


def test_a_partition_that_answers_with_an_error_is_read_on() -> None:
    """Such as one whose records retention has removed: the query reports what is lost."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, THERE)
    world.kafka.error = OffsetGoneError("offset 2 was removed")
    world.clock.sleep(EVERY_MS / 1_000)
    world.silent.poll()
    assert world.planned() == (4, 5)


def test_a_partition_that_answers_late_is_read_on_at_once() -> None:
    """The request remains open meanwhile, and nothing waits for it."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, THERE)
    before_s, reader = world.clock.monotonic_s(), world.kafka.last
    world.silent.poll()
    assert world.clock.monotonic_s() == before_s
    assert world.planned() == (4, 2)
    assert reader is not None
    assert not reader.closed
    reader.answer()
    world.silent.poll()
    assert world.planned() == (4, 5)
    assert reader.closed


def test_the_reader_is_closed_with_the_query() -> None:
    """What is left out remains so until the next one begins."""
    world = World(Kafka([SILENT]))
    world.silent.find(READ.end, THERE)
    world.silent.close()
    assert world.kafka.last is not None
    assert world.kafka.last.closed
    assert world.planned() == (4, 2)

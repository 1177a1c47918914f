from collections.abc import Callable, Iterable

import pytest

from brokers.kafka_interface import Isolation, NotNowError, Place
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import Ends
from pipeline.boundaries.ends import Answer, ends_of
from pipeline.boundaries.next_batch import Batch, Limits
from pipeline.clock import steady_ms
from pipeline.errors import RefusedError
from pipeline.ids import Offset, TopicName
from pipeline.spark.run.acknowledged_check import AcknowledgedCheck
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.reachable_ends import ReachableEnds
from tests.unit.boundaries.support import CARS, at, lane, marker, positions
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create
from tests.unit.spark.support import fragment

FRAGMENT = fragment("tolls")
OUT = FRAGMENT.output.topic
READ = marker(positions(CARS, 2, 2))
AWAY = (CARS.topic, 1)


class Kafka(MemoryKafka):
    """Records in two partitions; the leaders of some partitions do not answer."""

    def __init__(self, *counts: int, silent: Iterable[Place] = ()) -> None:
        super().__init__(TwinClock())
        self.silent = set(silent)
        create(self, CARS.topic, OUT, partitions=2)
        for partition, count in enumerate(counts):
            for _ in range(count):
                self.append(CARS.topic, None, b"", partition=partition)

    def leader_answers(self, place: Place) -> bool:
        """Unless it is silent."""
        return place not in self.silent

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """Without topics of which a leader is silent."""
        silent = {topic for topic, _ in self.silent}
        return super().end_offsets([one for one in topics if one not in silent], isolation)


class World:
    """A lane that has read two records of each partition, and starts again."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.asked = kafka, 0
        self.planner = LanePlanner(lane(CARS), kafka.clock, lambda _: None)
        ends = ReachableEnds(kafka, kafka, kafka.clock)
        self.check = AcknowledgedCheck(FRAGMENT, "", ends, self.planner, self.ask, "speed")
        self._reader = kafka.ends_reader()

    def ask(self) -> Callable[[], None]:
        """The topics are the same."""
        self.asked += 1
        return lambda: None

    def start(self) -> None:
        """Check the marker, and begin to plan."""
        self.check.begin(READ)
        self.planner.begin(READ, {}, None)
        self.planner.begin_query(READ, Limits(100))

    def poll(self) -> None:
        """Pass on the ends that are answered now."""
        found = self._reader.read((CARS.topic,), 0.0)
        answer = Answer(found.stable, found.written, found.late, found.missing)
        self.planner.ends_read(ends_of(None, steady_ms(self.kafka.clock), answer))

    def planned(self) -> tuple[int, ...]:
        """How many records of each partition the next batch reads; none: there is none."""
        found = self.planner.next(0.0)
        if not isinstance(found, Batch):
            return ()
        return tuple(found.end[at(CARS, p)] - READ.end[at(CARS, p)] for p in range(2))


def test_all_partitions_are_checked_if_they_answer() -> None:
    """And read at once."""
    world = World(Kafka(3, 4))
    world.start()
    assert not world.check.unchecked
    world.poll()
    assert world.planned() == (1, 2)


def test_a_partition_that_cannot_be_reached_is_read_only_after_its_check() -> None:
    """Also if it answers before."""
    world = World(Kafka(3, 4, silent=(AWAY,)))
    world.start()
    assert world.check.unchecked == {AWAY}
    world.poll()
    assert world.planned() == (1, 0)
    world.check.go_on(READ)
    assert world.check.unchecked == {AWAY}
    world.kafka.silent.clear()
    world.poll()
    assert world.planned() == ()
    world.check.go_on(READ)
    assert not world.check.unchecked
    world.poll()
    assert world.planned() == (1, 2)


def test_records_that_are_lost_stop_the_lane_when_their_partition_is_back() -> None:
    """It has read two records of it, and there is one."""
    world = World(Kafka(3, 1, silent=(AWAY,)))
    world.start()
    world.kafka.silent.clear()
    world.poll()
    with pytest.raises(RefusedError, match="the topic ends at 1"):
        world.check.go_on(READ)
    assert world.asked == 1
    assert world.planned() == (1, 0)


def test_lost_records_of_a_partition_that_answers_stop_the_lane_at_once() -> None:
    """Whether or not the others answer."""
    for silent in ((), (AWAY,)):
        with pytest.raises(RefusedError, match="the topic ends at 1"):
            World(Kafka(1, 4, silent=silent)).start()


def test_an_output_has_to_be_reached() -> None:
    """The lane writes to it."""
    with pytest.raises(NotNowError, match=OUT):
        World(Kafka(3, 4, silent=((OUT, 0),))).start()


def test_without_any_leader_the_lane_does_not_start() -> None:
    """Nothing can be read."""
    everything = [(topic, part) for topic in (CARS.topic, OUT) for part in range(2)]
    with pytest.raises(NotNowError):
        World(Kafka(3, 4, silent=everything)).start()


def test_a_lane_plans_nothing_of_a_topic_that_has_become_shorter() -> None:
    """Also when it has grown again meanwhile: the records between are not those that were there."""
    world = World(Kafka(2, 2))
    world.start()
    world.poll()
    shorter = {CARS.topic: {0: Offset(1), 1: Offset(2)}}
    ended = Answer(shorter, shorter)
    world.planner.ends_read(ends_of(None, steady_ms(world.kafka.clock), ended))
    for _ in range(5):
        world.kafka.append(CARS.topic, None, b"", partition=0)
    world.poll()
    assert world.planned() == ()
    with pytest.raises(RefusedError, match="before offset 2 was read, but the topic ends at 1"):
        world.check.go_on(READ)
    assert world.asked == 1

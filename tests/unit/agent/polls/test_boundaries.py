"""Polling of boundary topics, and when they are read from their beginning again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pytest

from brokers.kafka_interface import (
    BEGINNING,
    POLL_RECORDS_MAX,
    Describing,
    Isolation,
    OffsetGoneError,
)
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import Ends, KafkaRecord, TopicDescription
from pipeline.agent.polls.boundaries import DESCRIBE_S, BoundaryPoll
from pipeline.agent.watched import Watched
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.lane_time import Writer
from pipeline.boundaries.profile import DerivedInput
from pipeline.clock import steady_ms
from pipeline.errors import MedusaError, UnavailableError
from pipeline.ids import (
    Epoch,
    Millis,
    Offset,
    SteadyMillis,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.markers.codec import encode_activity, encode_boundary
from pipeline.markers.signals import ActivityRecord, BoundaryRecord, activity_key
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

COUNTS = TopicName("net.counts")
BOUNDARIES = TopicName("net.counts.boundaries")
WRITER = "local.net.counts"


class Kafka(MemoryKafka):
    """Boundary topics in memory, with faults."""

    def __init__(self) -> None:
        super().__init__(TwinClock())
        self.described = 0
        self.silent = False
        self.fails: MedusaError | None = None
        self.readers: list[Reader] = []

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """The topics at the time of the request."""
        self.described += 1
        request = super().begin_describing(topics)

        def result() -> Mapping[TopicName, TopicDescription]:
            if self.silent:
                raise UnavailableError("Kafka does not answer")
            return request.result()

        return Describing(done=request.done, result=result)

    def open(self) -> "Reader":
        """A reader."""
        self.readers.append(Reader(self))
        return self.readers[-1]

    def create_again(self, value: bytes) -> None:
        """Recreate the topic with another id."""
        self.delete_topics((BOUNDARIES,))
        create(self, BOUNDARIES)
        self.write(value)

    def write(self, *values: bytes | None, key: bytes | None = None) -> None:
        """Append records."""
        for value in values:
            self.append(BOUNDARIES, key, value)


class Reader(MemoryReader):
    """Reads all from the beginning; may fail."""

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(kafka, 1.0, Isolation.COMMITTED)
        self._kafka = kafka

    def assign(self, starts: Ends) -> None:
        """Always from the beginning."""
        assert all(offsets == {0: BEGINNING} for offsets in starts.values())
        super().assign(starts)

    def poll(
        self, timeout_s: float, records_max: int = POLL_RECORDS_MAX
    ) -> tuple[KafkaRecord, ...]:
        """Records returned before an error are lost with it."""
        assert timeout_s > 0
        found = super().poll(timeout_s, records_max)
        if self._kafka.fails is not None:
            raise self._kafka.fails
        return found


def value(at_ms: int, topic_id: str = "counts-1") -> bytes:
    """A boundary of the derived stream."""
    positions = {0: Offset(0)}
    return encode_boundary(
        BoundaryRecord(TopicId(topic_id), WRITER, Epoch(1), Millis(at_ms), positions)
    )


@dataclass
class News:
    """What was read since it was last cleared."""

    boundaries: list[tuple[Writer, Epoch, PendingBoundary]] = field(default_factory=list)
    activity: list[tuple[Writer, Epoch, bool, SteadyMillis]] = field(default_factory=list)

    def boundary_read(self, writer: Writer, epoch: Epoch, boundary: PendingBoundary) -> None:
        """Note it."""
        self.boundaries.append((writer, epoch, boundary))

    def activity_read(
        self, writer: Writer, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis
    ) -> None:
        """Note it."""
        self.activity.append((writer, epoch, idle, at_ms))


@dataclass
class World:
    """A node that runs a fragment that reads another one's stream."""

    kafka: Kafka = field(default_factory=Kafka)
    news: News = field(default_factory=News)

    def __post_init__(self) -> None:
        self.watched, self.clock = Watched(), TwinClock()
        self.poll = BoundaryPoll(self.kafka, self.kafka.open, self.watched, self.clock, self.news)

    def watch(self, topic_id: str | None = "counts-1") -> None:
        """The node reads a derived stream over a topic with this id; None: none."""
        one = DerivedInput(StreamName("counts"), COUNTS, 1, WRITER, TopicId(topic_id or ""))
        inputs = frozenset() if topic_id is None else frozenset({one})
        self.watched.watch(frozenset({COUNTS}), inputs)

    def look(self, times: int = 1) -> list[int]:
        """Poll at the interval of topic descriptions; the boundaries received."""
        self.news.boundaries.clear()
        self.news.activity.clear()
        for _ in range(times):
            self.clock.sleep(DESCRIBE_S)
            self.poll.read()
        return [boundary.boundary_ms for _, _, boundary in self.news.boundaries]


@pytest.fixture
def world() -> World:
    """A node that has read one boundary."""
    found = World()
    found.kafka.create_again(value(100))
    found.watch()
    assert found.look() == [100]
    return found


def test_a_boundary_is_sent_once(world: World) -> None:
    """Unless something changes."""
    assert world.look(3) == []
    world.kafka.write(value(200))
    assert world.look(3) == [200]


def test_boundaries_are_read_again_after_a_change_that_is_undone_at_once(world: World) -> None:
    """The node has dropped what it knew of the writer; the poll never saw the other inputs."""
    world.watch(None)
    world.watch()
    assert world.look(2) == [100]
    world.watch()
    assert world.look(2) == []


def test_a_recreated_boundary_topic_is_read_from_its_beginning(
    world: World,
) -> None:
    """Also where it contains as many records as the old one did."""
    world.kafka.create_again(value(300))
    assert world.look(2) == [300]


def test_a_missing_boundary_topic_is_read_once_it_exists_again(world: World) -> None:
    """Until then there is nothing to read."""
    world.kafka.delete_topics((BOUNDARIES,))
    assert world.look(3) == []
    world.kafka.create_again(value(300))
    assert world.look(2) == [300]


def test_a_reader_error_loses_no_boundary(world: World) -> None:
    """All is read again: records returned together with the error were not sent."""
    world.kafka.fails = OffsetGoneError("gone")
    world.kafka.write(value(200))
    with pytest.raises(OffsetGoneError):
        world.look()
    assert world.kafka.readers[-1].closed
    world.kafka.fails = None
    assert world.look() == [100, 200]


def test_reading_continues_when_topics_cannot_be_described(world: World) -> None:
    """The reader has a separate connection."""
    world.kafka.silent = True
    world.kafka.write(value(200))
    assert world.look(2) == [200]
    assert len(world.kafka.readers) == 1


def test_topics_are_described_about_once_a_second(world: World) -> None:
    """Independent of the number of reads."""
    before = world.kafka.described
    for _ in range(10):
        world.clock.sleep(DESCRIBE_S / 10)
        world.poll.read()
    assert world.kafka.described - before <= 1


@pytest.mark.parametrize(
    "foreign",
    [
        b"not JSON",
        b"\xff\xfe",
        b"{}",
        b"[1]",
        b"[" * 100_000,
        b'{"format":1,"writer":"local.net.counts","epoch":1,"boundary_ms":5,"positions":{}}',
        b'{"format":1,"topic_id":"counts-1","writer":"w","epoch":1,"boundary_ms":5,"positions":{"'
        + b"1" * 5_000
        + b'":1}}',
    ],
)
def test_a_record_that_is_no_boundary_is_skipped(
    world: World, foreign: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """And logged with its position; those behind it are sent."""
    world.kafka.write(foreign, None, value(200))
    assert world.look() == [200]
    assert f"topic {BOUNDARIES}, partition 0, offset 1" in caplog.text


def test_boundaries_are_read_again_when_a_data_topic_is_recreated(world: World) -> None:
    """Both are sent: each contains the topic id that it is about."""
    world.watch("counts-2")
    world.kafka.write(value(50, "counts-2"))
    assert world.look() == [100, 50]


def test_a_node_without_lanes_reads_nothing(world: World) -> None:
    """It has no connection either."""
    world.watch(None)
    assert world.look(2) == []
    assert world.kafka.readers[-1].closed


def test_activity_records_are_sent_too() -> None:
    """They are no boundaries; damaged ones and outdated ones are skipped."""
    world = World()
    activity = encode_activity(ActivityRecord(TopicId("counts-1"), WRITER, Epoch(2), idle=True))
    world.kafka.create_again(value(7))
    world.kafka.write(activity, key=activity_key(WRITER))
    world.watch()
    assert world.look(2) == [7]
    assert world.news.activity == []
    world.kafka.write(activity, b"{}", key=activity_key(WRITER))
    assert world.look(1) == []
    now_ms = steady_ms(world.clock)
    assert world.news.activity == [((TopicId("counts-1"), WRITER), Epoch(2), True, now_ms)]


def test_a_boundary_is_sent_with_its_writer_and_positions(world: World) -> None:
    """The epoch decides whether it still counts."""
    world.kafka.write(value(200))
    world.look()
    writer = TopicId("counts-1"), WRITER
    assert world.news.boundaries == [
        (writer, Epoch(1), PendingBoundary(Millis(200), {0: Offset(0)}))
    ]

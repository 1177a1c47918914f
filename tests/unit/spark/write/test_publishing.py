"""Publication of a sink's boundary, separate from the batch that makes it valid."""

import pytest

from brokers.kafka_interface import NoSuchTopicError
from brokers.records import Headers
from pipeline.ids import Millis, TopicName
from pipeline.markers.codec import decode_boundary
from pipeline.markers.signals import BoundaryRecord
from pipeline.spark.write.sink import Sink
from tests.unit.spark.write.sink_twins import (
    NOW,
    Batch,
    Log,
    Plain,
    Plans,
    Topics,
    facts,
    sink,
    write,
)

OUT, BOUNDARIES = "local.net.moving", "local.net.moving.boundaries"
ROWS = [(b"a", NOW + 1, None), (b"b", NOW + 2, None), (b"c", NOW + 3, None)]


class World:
    """A lane whose first batch has published a promise."""

    def __init__(self) -> None:
        self.log = Log()
        self.topics = Topics(self.log)
        self.topics.describe(OUT, "out-1")
        self.topics.describe(BOUNDARIES, "b-1")
        self.plain = Plain(self.log)
        self.plans = Plans(NOW)
        self.sink: Sink = sink(self.log, [], plain=self.plain, topics=self.topics, plans=self.plans)
        write(self.sink, Batch(facts(0, 5), ROWS))

    @property
    def published(self) -> list[BoundaryRecord]:
        """All boundaries so far."""
        values = self.log.values.get(BOUNDARIES, [])
        return [decode_boundary(value or b"", "") for value in values]


@pytest.fixture
def world() -> World:
    """A lane that has published one boundary."""
    found = World()
    assert [one.boundary_ms for one in found.published] == [NOW]
    return found


def test_a_boundary_contains_the_id_of_its_topic(world: World) -> None:
    """A topic created later has the same name."""
    (one,) = world.published
    assert (one.topic_id, one.positions) == ("out-1", {0: 4})


def test_an_unchanged_boundary_is_not_published_again(world: World) -> None:
    """However often it is requested."""
    for _ in range(3):
        world.sink.publisher.publish_again()
    assert len(world.published) == 1


def test_a_recreated_boundary_topic_gets_the_boundary_again(
    world: World,
) -> None:
    """Without a batch; not while it is missing."""
    del world.topics.described[BOUNDARIES]
    world.sink.publisher.publish_again()
    assert len(world.published) == 1
    world.topics.describe(BOUNDARIES, "b-2")
    world.sink.publisher.publish_again()
    world.sink.publisher.publish_again()
    assert [one.boundary_ms for one in world.published] == [NOW, NOW]


def test_an_output_with_new_partitions_gets_a_boundary_of_all_of_them(world: World) -> None:
    """Without a batch, and although the promise is the same."""
    world.topics.describe(OUT, "out-1", 3)
    world.sink.publisher.publish_again()
    world.sink.publisher.publish_again()
    first, second = world.published
    assert (first.boundary_ms, set(first.positions)) == (NOW, {0})
    assert (second.boundary_ms, set(second.positions)) == (NOW, {0, 1, 2})


def test_results_go_into_the_partitions_of_the_boundaries(world: World) -> None:
    """The number never falls, also where an older description arrives late."""
    world.topics.describe(OUT, "out-1", 3)
    world.log.clear()
    write(world.sink, Batch(facts(1, 6), ROWS, places=(0, 1, 5)))
    assert [one.partition for one in world.log.records[OUT]] == [0, 1, 2]
    looked, sent = (world.log.done.index((what, OUT)) for what in ("look at", "send"))
    assert looked < sent, "the driver learns late of partitions by itself"
    world.topics.describe(OUT, "out-1", 2)
    world.plans.event_ms = Millis(NOW + 9)
    write(world.sink, Batch(facts(2, 7), ROWS, places=(0, 1, 5)))
    assert world.published[-1].positions.keys() == {0, 1, 2}


def test_an_undelivered_boundary_is_published_again(world: World) -> None:
    """The driver reports it long after it has accepted the record."""
    world.plain.lost = 1
    world.sink.publisher.publish_again()
    world.sink.publisher.publish_again()
    assert len(world.published) == 2


def test_a_missing_boundary_topic_stops_no_batch() -> None:
    """The boundary is published when the topic exists again."""
    log = Log()
    topics, plain = Topics(log), Gone(log)
    written = sink(log, [], plain=plain, topics=topics, plans=Plans(NOW))
    write(written, Batch(facts(0, 5)))
    assert (written.marker.batch, BOUNDARIES in log.values) == (0, False)
    plain.gone = False
    written.publisher.publish_again()
    assert len(log.values[BOUNDARIES]) == 1


class Gone(Plain):
    """A producer whose topic was deleted."""

    gone = True

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Refuse it."""
        if self.gone:
            raise NoSuchTopicError("the topic does not exist")
        super().send(
            topic, key, value, headers=headers, timestamp_ms=timestamp_ms, partition=partition
        )

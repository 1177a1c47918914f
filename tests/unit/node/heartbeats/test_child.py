"""The loop of the process that sends heartbeats, over Kafka in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from brokers.kafka.servers import KafkaServers
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import NewTopicSpec
from pipeline.clock import Clock
from pipeline.errors import UnavailableError
from pipeline.heartbeats.codec import decode
from pipeline.heartbeats.heartbeat import INTERVAL_MS, STEPS_EVERY, Heartbeat
from pipeline.heartbeats.topic import HeartbeatWriter
from pipeline.ids import Millis, NodeId, ParticipantId, TopicName
from pipeline.names import heartbeats_topic
from pipeline.node.heartbeats.child import send_all
from pipeline.node.heartbeats.messages import Orders, Parent
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import records

ADA = ParticipantId("ada")
ORDERS = Orders(KafkaServers("broker:1"), ADA, NodeId("n1"), Millis(7))
TOPIC = heartbeats_topic(ADA)


class Script(Parent):
    """A parent that ends after so many waits; before each, something may happen."""

    def __init__(self, clock: TwinClock, waits: int) -> None:
        super().__init__(-1, clock)
        self.clock = clock
        self.waits = waits
        self.happens: dict[int, Callable[[], None]] = {}
        self.calls = 0

    def wait(self, until_s: float) -> None:
        """Advance the clock."""
        self.calls += 1
        self.happens.get(self.calls, lambda: None)()
        self.clock.sleep(max(0.0, until_s - self.clock.monotonic_s()))
        self.ended = self.calls > self.waits


class Kafka(MemoryKafka):
    """May be away; a request then takes two seconds."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.away = False

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Fails while it is away."""
        if self.away:
            self.clock.sleep(2.0)
            raise UnavailableError("Kafka does not answer", hint="is a broker away?")
        return super().create_topics(topics)


@dataclass
class World:
    """A child whose parent ends after so many heartbeats."""

    parent: Script
    kafka: Kafka
    reported: list[str] = field(default_factory=list)

    def run(self) -> list[Heartbeat]:
        """Send all; returns what was written."""
        writer = HeartbeatWriter(ADA, self.kafka, partial(self.kafka.producer, 1.0))
        send_all(ORDERS, self.parent, writer, self.parent.clock, self.reported.append)
        return [decode(record.value, "") for record in records(self.kafka, TOPIC)]


def times_of(found: list[Heartbeat]) -> list[int]:
    """When each was sent, to 10 ms: the clock of the test adds up fractions."""
    return [round(one.sent_ms, -1) for one in found]


@pytest.fixture
def world() -> World:
    """Five heartbeats before the end."""
    clock = TwinClock()
    return World(Script(clock, 5), Kafka(clock))


def test_heartbeats_come_at_a_steady_pace_until_the_end(world: World) -> None:
    """The last one says that the process has ended."""
    found = world.run()
    assert [one.number for one in found] == [1, 2, 3, 4, 5, 6]
    assert [one.ended for one in found] == [False] * 5 + [True]
    assert times_of(found) == [INTERVAL_MS * n for n in range(6)]
    assert [one.agent_ms for one in found] == [one.sent_ms for one in found]
    assert {(one.node, one.life) for one in found} == {("n1", 7)}
    assert world.reported == []


def test_some_heartbeats_have_the_steps_of_the_lanes(world: World) -> None:
    """The first one, and then one a second."""
    world.parent.waits = 2 * STEPS_EVERY
    found = world.run()
    assert [one.number for one in found if one.steps is not None] == [1, 11, 21]
    assert found[0].steps == ()


def test_none_is_sent_for_a_time_that_has_passed(world: World) -> None:
    """After a delay, such as a suspended process, the pace begins anew."""
    world.parent.happens[3] = lambda: world.parent.clock.sleep(10.0)
    assert times_of(world.run()) == [0, 100, 10_100, 10_200, 10_300, 10_400]


def test_none_is_sent_for_the_time_of_an_outage(world: World) -> None:
    """Its beginning and its end are reported, each in one line."""
    world.kafka.away = True
    world.parent.happens[3] = lambda: setattr(world.kafka, "away", False)
    found = world.run()
    assert [one.number for one in found] == [3, 4, 5, 6]
    assert times_of(found) == [4_200, 4_300, 4_400, 4_500]
    assert world.reported == ["Kafka does not answer hint: is a broker away?", ""]


def test_the_end_is_not_delayed_by_an_outage(world: World) -> None:
    """The process ends without a last heartbeat."""
    world.parent.waits = 0
    world.kafka.away = True
    writer = HeartbeatWriter(ADA, world.kafka, partial(world.kafka.producer, 1.0))
    send_all(ORDERS, world.parent, writer, world.parent.clock, world.reported.append)
    assert world.kafka.topic_names() == ()
    assert world.parent.calls == 1

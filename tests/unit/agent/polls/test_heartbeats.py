"""Polling of heartbeats: topics that come and go, damaged records, what is sent of suspicions."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from brokers.kafka_interface import (
    FETCH_WAIT_MS,
    POLL_RECORDS_MAX,
    Isolation,
    NoSuchTopicError,
)
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import KafkaRecord
from pipeline.agent.polls.heartbeats import REOPENED_MS, HeartbeatPoll
from pipeline.clock import steady_ms
from pipeline.errors import MedusaError, UnavailableError
from pipeline.formats import NEWEST
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.detector import Detector, Suspect, Suspicion
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.ids import Millis, NodeId, ParticipantId, SteadyMillis
from pipeline.names import heartbeats_topic
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

OWN, OTHER = NodeId("own"), NodeId("other")
LIFE = Millis(5)
TOPIC = heartbeats_topic(ParticipantId("ada"))
GONE = frozenset({Suspect(OTHER, LIFE)})


class Kafka(MemoryKafka):
    """A topic of heartbeats in memory, with an outage."""

    def __init__(self) -> None:
        super().__init__(TwinClock())
        self.opened: list[MemoryReader] = []
        self.fails: MedusaError | None = None

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> MemoryReader:
        """A reader that fails while it is told to."""
        kafka = self

        class Reader(MemoryReader):
            def poll(
                self, timeout_s: float, records_max: int = POLL_RECORDS_MAX
            ) -> tuple[KafkaRecord, ...]:
                if kafka.fails is not None:
                    raise kafka.fails
                return super().poll(timeout_s, records_max)

        del fetch_wait_ms
        self.opened.append(Reader(self, timeout_s, isolation))
        return self.opened[-1]


@dataclass
class World:
    """A poll of the node `own`, and what it has sent."""

    kafka: Kafka = field(default_factory=Kafka)
    sent: list[frozenset[Suspect]] = field(default_factory=list)
    last: frozenset[Suspect] = frozenset()
    reads: int = 0

    def __post_init__(self) -> None:
        clock = self.kafka.clock
        detector = Detector(OWN, LIFE, 1_000)
        self.poll = HeartbeatPoll(self.kafka, TOPIC, detector, clock, self.take)

    def write(self, node: NodeId, agent_ms: int = 0, *, ended: bool = False) -> None:
        """A heartbeat, now."""
        sent_ms = steady_ms(self.kafka.clock)
        self.put(encode(Heartbeat(node, LIFE, 1, sent_ms, agent_ms, ended)))

    def take(self, suspicions: Mapping[Suspect, Suspicion]) -> None:
        """Note a change: each read sends what is suspected, so that it counts as present."""
        found = frozenset(suspicions)
        self.last, before = found, self.last
        self.reads += 1
        if found != before:
            self.sent.append(found)

    def put(self, value: bytes | None) -> None:
        """A record."""
        self.kafka.append(TOPIC, None, value)

    def run(self, seconds: float, *nodes: NodeId) -> None:
        """So much time, ten heartbeats a second of each node."""
        for _ in range(round(seconds * 10)):
            self.kafka.clock.sleep(0.1)
            for node in nodes:
                self.write(node)
            self.poll.read()


@pytest.fixture
def world() -> World:
    """Two nodes that send heartbeats."""
    found = World()
    create(found.kafka, TOPIC)
    found.poll.read()
    found.run(1.0, OTHER, OWN)
    return found


def test_the_suspected_nodes_are_sent_when_they_change(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Once each, and logged in one line each."""
    assert world.sent == []
    world.run(3.0, OWN)
    assert world.sent == [GONE]
    world.run(1.0, OTHER, OWN)
    assert world.sent == [GONE, frozenset()]
    world.write(OTHER, ended=True)
    world.run(1.0, OWN)
    assert world.sent == [GONE, frozenset(), GONE]
    first, second, third = [record.getMessage() for record in caplog.records]
    assert "node other is suspected: no heartbeat for 1" in first
    assert "limit 1000 ms; false suspicions of it so far: 0" in first
    assert "node other is no longer suspected; it was: no heartbeat for" in second
    assert third == "node other is suspected: its process has ended"


def test_a_suspicion_of_an_agent_says_so(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Its process sends heartbeats."""
    world.write(OTHER, 12_000)
    world.run(0.1, OWN)
    assert world.sent == [GONE]
    assert "no decision of its agent for 12000 ms, limit 10000 ms" in caplog.messages[-1]


def test_a_node_that_reads_no_own_heartbeats_suspects_nobody(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka answers, but does not accept ours."""
    world.run(2.0, OWN)
    assert world.sent == [GONE]
    world.run(2.0)
    assert world.sent == [GONE, frozenset()]
    assert "as this node does not read its own heartbeats" in caplog.messages[-1]


def test_nobody_is_suspected_while_kafka_is_away(world: World) -> None:
    """The error goes on to whoever runs the poll, and the next read opens a reader again."""
    world.run(2.0, OWN)
    world.kafka.fails = UnavailableError("Kafka does not answer")
    world.kafka.clock.sleep(2.0)
    with pytest.raises(UnavailableError):
        world.poll.read()
    assert world.sent == [GONE, frozenset()]
    assert world.kafka.opened[0].closed
    world.kafka.fails = None
    world.poll.read()
    world.run(2.0, OWN, OTHER)
    assert world.sent == [GONE, frozenset()]
    assert [one.closed for one in world.kafka.opened] == [True, False]


def test_what_was_there_before_is_not_read() -> None:
    """Heartbeats of the past say nothing."""
    world = World()
    create(world.kafka, TOPIC)
    for _ in range(3):
        world.write(OTHER, ended=True)
    world.run(1.0, OWN)
    assert world.sent == []


def test_the_topic_may_come_later() -> None:
    """Whoever sends the first heartbeat creates it."""
    world = World()
    with pytest.raises(NoSuchTopicError):
        world.poll.read()
    create(world.kafka, TOPIC)
    world.run(1.0, OTHER, OWN)
    world.run(2.0, OWN)
    assert world.sent == [GONE]


def test_a_topic_that_was_created_again_is_read(world: World) -> None:
    """Also if the reader gives no error: without own heartbeats it is opened again."""
    world.kafka.delete_topics((TOPIC,))
    create(world.kafka, TOPIC)
    for _ in range(1_000):  # beyond the position of the reader, which goes on there
        world.put(None)
    world.run(REOPENED_MS / 1_000)
    assert world.kafka.opened[0].closed
    world.run(1.0, OTHER, OWN)
    world.run(2.0, OWN)
    assert world.sent == [GONE]


def test_damaged_records_are_passed_over(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """With one warning; also those of a later version, which this node need not read."""
    newer = encode(Heartbeat(OTHER, LIFE, 1, SteadyMillis(0), 0)).replace(
        b'"format":1', b'"format":%d' % (NEWEST + 1)
    )
    for value in (b"?", None, newer):
        world.put(value)
    world.run(1.0, OTHER, OWN)
    assert world.sent == []
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert f"topic {TOPIC}, partition 0, offset 20" in warning.getMessage()

"""Overdue steps, from the last heartbeats."""

from dataclasses import replace

import pytest

from brokers.log_reader import LogReader
from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.last_steps import overdue_steps
from pipeline.heartbeats.steps import Doing, StepAge
from pipeline.ids import Millis, NodeId, ParticipantId, SteadyMillis
from pipeline.names import heartbeats_topic
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

ADA = ParticipantId("ada")
TOPIC = heartbeats_topic(ADA)
N1, N2 = NodeId("n1"), NodeId("n2")
LIVES = {N1: Millis(7), N2: Millis(8)}
LONG = StepAge("tolls.moving", Doing.BATCH, 90_000)
SHORT = StepAge("tolls.stopped", Doing.BATCH, 900)
BEAT = Heartbeat(N1, Millis(7), 1, SteadyMillis(0), 0)


@pytest.fixture
def kafka() -> MemoryKafka:
    """The topic exists."""
    found = MemoryKafka(TwinClock())
    create(found, TOPIC)
    return found


def overdue(kafka: MemoryKafka, lives: dict[NodeId, Millis]) -> dict[tuple[NodeId, str], StepAge]:
    """By the records that are there."""
    return dict(overdue_steps(LogReader(kafka, 1.0), ADA, lives))


def test_only_overdue_steps_of_present_lives_count(kafka: MemoryKafka) -> None:
    """Of each node the last ones; a heartbeat without steps changes nothing."""
    for beat in (
        replace(BEAT, steps=(LONG, SHORT)),
        replace(BEAT, node=N2, life=Millis(8), steps=(LONG,)),
        BEAT,
        replace(BEAT, node=N2, life=Millis(8), steps=(SHORT,)),
        replace(BEAT, node=N2, life=Millis(6), steps=(LONG,)),
        replace(BEAT, node=NodeId("n3"), steps=(LONG,)),
    ):
        kafka.append(TOPIC, None, encode(beat))
    kafka.append(TOPIC, None, b"no heartbeat")
    assert overdue(kafka, LIVES) == {(N1, "tolls.moving"): LONG}


def test_without_heartbeats_nothing_is_known(kafka: MemoryKafka) -> None:
    """Without nodes or a topic neither."""
    assert overdue(kafka, LIVES) == {}
    kafka.append(TOPIC, None, encode(replace(BEAT, steps=(LONG,))))
    assert overdue(kafka, {}) == {}
    kafka.delete_topics([TOPIC])
    assert overdue(kafka, LIVES) == {}

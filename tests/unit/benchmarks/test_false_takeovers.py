"""Counts of false takeovers."""

import pytest

from benchmarks.false_takeovers import Counts, suspicions_in
from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.agent.polls.heartbeats import HeartbeatPoll
from pipeline.clock import steady_ms
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.detector import Detector
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.names import heartbeats_topic
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

LIFE, TOPIC = Millis(5), heartbeats_topic(ParticipantId("ada"))


def test_counts_are_said_in_one_line() -> None:
    """With their time."""
    shown = str(Counts(90.0, 1, ("a", "b"), 2.26, 1.5))
    assert shown.startswith("1.5 minutes: 1 takeovers, 2 suspicions, at most 2.3 s without a batch")


def test_a_suspicion_is_found_in_the_log_and_its_end_is_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As a node logs them."""
    kafka = MemoryKafka(TwinClock())
    create(kafka, TOPIC)
    detector = Detector(NodeId("own"), LIFE, 1_000)
    poll = HeartbeatPoll(kafka, TOPIC, detector, kafka.clock, lambda _: None)
    poll.read()
    for nodes in [("own", "other")] * 10 + [("own",)] * 12 + [("own", "other")] * 2:
        kafka.clock.sleep(0.1)
        for node in nodes:
            heartbeat = Heartbeat(NodeId(node), LIFE, 1, steady_ms(kafka.clock), 0)
            kafka.append(TOPIC, None, encode(heartbeat))
        poll.read()
    assert len(caplog.messages) == 2
    assert suspicions_in("\n".join(caplog.messages)) == caplog.messages[:1]

"""The driver's requests, with the driver's mock of a cluster of two brokers."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaError

from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.ends_requests import EndsRequests
from brokers.kafka.leader_ends import LeaderEnds
from brokers.kafka.leaders import TopicLeaders, grouping
from brokers.kafka_interface import EndsAnswer
from brokers.ports import free_port
from pipeline.ids import TopicName
from tests.conftest import WaitFor
from tests.mock_brokers import MockBrokers, mock_brokers

TOPIC, MISSING = TopicName("topic"), TopicName("missing")
WITHIN_S = 5.0
SHORT_S = 0.05
HANGS_MS = 60_000


@pytest.fixture
def brokers() -> Iterator[MockBrokers]:
    """Two brokers, which lead one partition each."""
    with mock_brokers(2) as brokers:
        brokers.create(TOPIC, leaders=(1, 2))
        yield brokers


@pytest.fixture
def reader(brokers: MockBrokers) -> Iterator[LeaderEnds]:
    """A reader that has read once."""
    opened = RemoteKafka(brokers.bootstrap).ends_reader()
    assert opened.read((TOPIC,), WITHIN_S).stable == {TOPIC: {0: 0, 1: 0}}
    yield opened
    opened.close()


def until(read: Callable[[], EndsAnswer], wait_for: WaitFor) -> Callable[..., EndsAnswer]:
    """Repeats a read until its answer fulfils a condition."""
    answers: list[EndsAnswer] = []

    def wait(condition: Callable[[EndsAnswer], bool], what: str) -> EndsAnswer:
        def fulfilled() -> bool:
            answers.append(read())
            return condition(answers[-1])

        wait_for(fulfilled, what)
        return answers[-1]

    return wait


def test_topics_are_described(brokers: MockBrokers) -> None:
    """With their leaders; a missing one is described as missing."""
    requests = EndsRequests(brokers.bootstrap)
    asked = requests.describe((TOPIC, MISSING))
    assert asked.wait(WITHIN_S)
    found, problem = asked.take()
    topic = found[TOPIC]
    assert found == {TOPIC: topic, MISSING: None}
    assert problem == ""
    assert isinstance(topic, TopicLeaders)
    assert topic.leaders == {0: 1, 1: 2}
    requests.close()


def test_an_error_of_one_partition_is_an_answer(brokers: MockBrokers) -> None:
    """The leader has moved; the other partition has its offset."""
    brokers.create("other", leaders=(1,))
    requests = EndsRequests(brokers.bootstrap)
    asked = requests.describe((TOPIC, TopicName("other")))
    assert asked.wait(WITHIN_S)
    (first, _) = grouping((TOPIC, TopicName("other")), asked.take()[0]).groups
    brokers.lead("other", 0, 2)
    request = requests.ask(first)
    assert request.wait(WITHIN_S)
    answer = request.take()
    assert answer.stable == answer.written == {(TOPIC, 0): 0}
    assert (answer.answered, answer.moved, answer.problem) == (True, True, "")
    requests.close()


def test_without_a_broker_nothing_is_described() -> None:
    """The error contains the reason; a read returns in time, and a close without a wait."""
    requests = EndsRequests(f"127.0.0.1:{free_port()}")
    asked = requests.describe((TOPIC,))
    assert not asked.wait(0.0)
    assert asked.wait(WITHIN_S)
    found, problem = asked.take()
    assert found == {}
    assert "Kafka does not answer" in problem
    requests.close()
    reader = RemoteKafka(f"127.0.0.1:{free_port()}").ends_reader()
    began_s = time.monotonic()
    answer = reader.read((TOPIC,), SHORT_S)
    reader.close()
    assert (answer.stable, answer.missing) == ({}, frozenset())
    assert time.monotonic() - began_s < WITHIN_S


def test_a_broker_that_hangs_delays_nobody_else(brokers: MockBrokers, reader: LeaderEnds) -> None:
    """Its partition is missing, the others are not; only one read waits."""
    brokers.delay(2, HANGS_MS)
    began_s = time.monotonic()
    for _ in range(20):
        answer = reader.read((TOPIC,), 0.3)
        assert (answer.stable, answer.missing) == ({TOPIC: {0: 0}}, frozenset({(TOPIC, 1)}))
    assert time.monotonic() - began_s < 20 * 0.3


def test_a_slow_answer_is_late(brokers: MockBrokers, reader: LeaderEnds, wait_for: WaitFor) -> None:
    """And then its broker is asked again."""
    brokers.delay(2, 300)
    assert reader.read((TOPIC,), SHORT_S).missing == {(TOPIC, 1)}
    brokers.delay(2, 0)
    wait = until(lambda: reader.read((TOPIC,), SHORT_S), wait_for)
    assert wait(lambda answer: bool(answer.late), "a late answer").late == {TOPIC: {1: 0}}
    wait(lambda answer: not answer.missing, "all leaders answer")


def test_a_new_leader_is_found(brokers: MockBrokers, reader: LeaderEnds, wait_for: WaitFor) -> None:
    """After an error of the old one, and if the old one hangs."""
    brokers.lead(TOPIC, 1, 1)
    assert reader.read((TOPIC,), WITHIN_S).missing == {(TOPIC, 1)}
    wait = until(lambda: reader.read((TOPIC,), WITHIN_S), wait_for)
    wait(lambda answer: not answer.missing, "the new leader answers")
    brokers.lead(TOPIC, 1, 2)
    wait(lambda answer: bool(answer.missing), "the new leader does not lead any more")
    wait(lambda answer: not answer.missing, "the next leader answers")
    brokers.delay(2, HANGS_MS)
    assert reader.read((TOPIC,), SHORT_S).missing == {(TOPIC, 1)}
    brokers.lead(TOPIC, 1, 1)
    wait(lambda answer: not answer.missing, "the third leader answers")


def test_errors_of_the_driver_are_negative() -> None:
    """By this an answer of a broker is recognised."""
    assert KafkaError.NOT_LEADER_FOR_PARTITION > 0
    assert KafkaError._TIMED_OUT < 0

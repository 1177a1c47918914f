import logging

import pytest

from brokers.kafka.known_leaders import RENEW_S, KnownLeaders
from brokers.kafka.leaders import AGAIN_S, REFRESH_S, TopicLeaders
from pipeline.errors import UnavailableError
from pipeline.ids import TopicName
from tests.unit.brokers.kafka.asked import Brokers, Connection
from tests.unit.deploy.twins import TwinClock

A, B = TopicName("a"), TopicName("b")
TOPICS = {A: TopicLeaders("id-a", {0: 1}), B: TopicLeaders("id-b", {0: 2})}


@pytest.fixture
def brokers() -> Brokers:
    """Brokers with two topics."""
    return Brokers(TwinClock(), TOPICS)


def group(known: KnownLeaders, *topics: TopicName) -> set[int]:
    """The leaders of these topics."""
    return {one.leader for one in known.grouped(frozenset(topics), set(), 0.5).groups}


def give_up(brokers: Brokers, problem: str = "no answer") -> None:
    """The last description ends without an answer."""
    brokers.described[-1].found, brokers.described[-1].problem = {}, problem


def test_topics_that_are_no_longer_read_are_forgotten(brokers: Brokers) -> None:
    """With the next description."""
    known = KnownLeaders(brokers.connect, brokers.clock)
    assert group(known, A, B) == {1, 2}
    brokers.clock.sleep(REFRESH_S)
    assert group(known, A) == {1}
    assert group(known, A) == {1}
    assert known.found == {A: TOPICS[A]}


def test_a_topic_that_is_not_described_keeps_its_leaders(
    brokers: Brokers, caplog: pytest.LogCaptureFixture
) -> None:
    """The error is logged, once."""
    known = KnownLeaders(brokers.connect, brokers.clock)
    group(known, A, B)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            brokers.topics = None
            brokers.clock.sleep(REFRESH_S)
            group(known, A, B)
            brokers.described[-1].found = {A: TOPICS[A]}
            brokers.described[-1].problem = "topic b: not allowed"
            assert group(known, A, B) == {1, 2}
    assert len(caplog.records) == 1


def test_a_doubt_ends_with_the_next_description(brokers: Brokers) -> None:
    """One that was requested before does not end it, nor does one without an answer."""
    known = KnownLeaders(brokers.connect, brokers.clock)
    group(known, A)
    brokers.topics = None
    brokers.clock.sleep(REFRESH_S)
    group(known, A)
    known.doubt(1)
    brokers.described[-1].found = {A: TOPICS[A]}
    group(known, A)
    assert known.is_doubted(1)
    brokers.clock.sleep(AGAIN_S)
    group(known, A)
    give_up(brokers)
    group(known, A)
    assert known.is_doubted(1)
    brokers.topics = TOPICS
    brokers.clock.sleep(AGAIN_S)
    group(known, A)
    group(known, A)
    assert not known.is_doubted(1)


def unanswered(brokers: Brokers) -> KnownLeaders:
    """The connection has had no description for a while; another one is due for a trial."""
    known = KnownLeaders(brokers.connect, brokers.clock)
    group(known, A)
    brokers.connected[0].dead = True
    brokers.clock.sleep(REFRESH_S)
    group(known, A)
    give_up(brokers)
    group(known, A)
    brokers.clock.sleep(RENEW_S)
    return known


def test_a_connection_without_answers_is_replaced_by_one_with_answers(brokers: Brokers) -> None:
    """Nothing waits for that."""
    known = unanswered(brokers)
    passed_s = brokers.clock.passed_s
    group(known, A)
    assert group(known, A) == {1}
    assert known.connection is brokers.connected[1]
    assert [one.closed for one in brokers.connected] == [True, False]
    assert brokers.clock.passed_s == passed_s


def test_in_an_outage_the_connection_remains(brokers: Brokers) -> None:
    """A new one is tried once in a while, has no answer either, and is closed."""
    known = unanswered(brokers)
    brokers.topics = None
    group(known, A)
    give_up(brokers)
    assert group(known, A) == {1}
    assert known.connection is brokers.connected[0]
    brokers.clock.sleep(RENEW_S / 2)
    group(known, A)
    give_up(brokers)
    group(known, A)
    assert [one.closed for one in brokers.connected] == [False, True]


def test_a_connection_that_cannot_be_made_is_no_error(brokers: Brokers) -> None:
    """The machine has no thread left; the connection there is remains."""
    made: list[Connection] = []

    def connect() -> Connection:
        if made:
            raise UnavailableError("no thread left")
        made.append(brokers.connect())
        return made[-1]

    known = KnownLeaders(connect, brokers.clock)
    group(known, A)
    brokers.clock.sleep(REFRESH_S)
    made[0].dead = True
    group(known, A)
    give_up(brokers)
    group(known, A)
    brokers.clock.sleep(RENEW_S)
    assert group(known, A) == {1}
    assert known.connection is made[0]


def test_a_trial_is_closed_with_the_reader(brokers: Brokers) -> None:
    """Both connections."""
    known = unanswered(brokers)
    brokers.topics = None
    group(known, A)
    known.close()
    assert [one.closed for one in brokers.connected] == [True, True]

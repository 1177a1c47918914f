"""Readers of end offsets, in memory and on a real broker."""

from collections.abc import Callable, Iterator

import pytest

from brokers.kafka_interface import EndsAnswer, EndsReader, Isolation
from brokers.records import NewTopicSpec
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, TopicName
from tests.conformance.conftest import TIMEOUT_S, Cluster, deadline, started
from tests.conftest import WaitFor

MISSING = TopicName("there-is-no-such-topic")
Await = Callable[[tuple[TopicName, ...], Callable[[EndsAnswer], object]], EndsAnswer]


@pytest.fixture
def reader(cluster: Cluster) -> Iterator[EndsReader]:
    """A reader of the cluster."""
    opened = cluster.kafka.ends_reader()
    yield opened
    opened.close()


@pytest.fixture
def await_ends(reader: EndsReader, wait_for: WaitFor) -> Await:
    """Reads until an answer fulfils a condition, and returns it; metadata may be old at first."""

    def wait(
        topics: tuple[TopicName, ...], condition: Callable[[EndsAnswer], object]
    ) -> EndsAnswer:
        answers: list[EndsAnswer] = []

        def fulfilled() -> object:
            answers.append(reader.read(topics, TIMEOUT_S))
            return condition(answers[-1])

        wait_for(fulfilled, "the ends")
        return answers[-1]

    return wait


def send(cluster: Cluster, topic: TopicName, partition: int = 0) -> None:
    """Send one record."""
    writer = cluster.kafka.producer(TIMEOUT_S)
    writer.send(topic, None, b"x", partition=partition)
    writer.flush(TIMEOUT_S)
    writer.close()


def test_ends_are_those_after_the_request(cluster: Cluster, reader: EndsReader) -> None:
    """Each read has the records that were delivered before."""
    topic, empty = cluster.topic(), cluster.topic(1)
    asked_s = -1.0
    for count in range(4):
        answer = reader.read((topic, empty), TIMEOUT_S)
        assert answer.stable == answer.written == {topic: {0: count, 1: 0}, empty: {0: 0}}
        assert (answer.late, answer.missing) == ({}, frozenset())
        assert answer.asked_at_s >= asked_s
        asked_s = answer.asked_at_s
        send(cluster, topic)


def test_both_isolation_levels_are_read(
    cluster: Cluster, reader: EndsReader, await_ends: Await
) -> None:
    """They differ while a transaction is open, and agree with those that the admin reads."""
    topic = cluster.topic()
    with started(cluster, topic) as writer:
        writer.begin()
        writer.send(topic, None, b"x", timestamp_ms=1, partition=0)
        writer.commit(deadline())
        assert cluster.admin.await_decided(topic)
        writer.begin()
        writer.send(topic, None, b"x", timestamp_ms=1, partition=0)
        answer = await_ends((topic,), lambda answer: answer.written[topic][0] == 3)
        assert answer.stable == {topic: {0: 2, 1: 0}}
        assert answer.written == {topic: {0: 3, 1: 0}}
        assert cluster.admin.end_offsets((topic,)) == answer.stable
        send(cluster, topic)
        answer = reader.read((topic,), TIMEOUT_S)
        assert (answer.stable[topic][0], answer.written[topic][0]) == (2, 4)
        writer.abort(deadline())
    assert cluster.admin.await_decided(topic)
    answer = reader.read((topic,), TIMEOUT_S)
    assert answer.stable == answer.written == {topic: {0: 5, 1: 0}}
    assert cluster.admin.end_offsets((topic,), Isolation.UNCOMMITTED) == answer.written


def test_missing_topics_are_absent(cluster: Cluster, reader: EndsReader) -> None:
    """Everywhere; also if no topic is asked for, or none of them exists."""
    topic = cluster.topic(1)
    for _ in range(2):
        answer = reader.read((topic, MISSING), TIMEOUT_S)
        assert answer.stable == answer.written == {topic: {0: 0}}
        assert (answer.late, answer.missing) == ({}, frozenset())
        for topics in ((MISSING,), ()):
            answer = reader.read(topics, TIMEOUT_S)
            assert (answer.stable, answer.written) == ({}, {})
            assert (answer.late, answer.missing) == ({}, frozenset())


def test_a_topic_may_be_created_later(
    cluster: Cluster, reader: EndsReader, await_ends: Await
) -> None:
    """Also after it was read in vain; and another topic may be read too."""
    first = cluster.topic(1)
    assert reader.read((first,), TIMEOUT_S).stable == {first: {0: 0}}
    second = TopicName(f"{first}-later")
    reader.read((first, second), TIMEOUT_S)
    cluster.admin.create_topics((NewTopicSpec(second, 2, 1),))
    answer = await_ends((first, second), lambda answer: second in answer.stable)
    assert answer.stable == answer.written == {first: {0: 0}, second: {0: 0, 1: 0}}


def test_new_partitions_of_a_topic_are_read(
    cluster: Cluster, reader: EndsReader, await_ends: Await
) -> None:
    """With their records."""
    topic = cluster.topic(1)
    assert reader.read((topic,), TIMEOUT_S).stable == {topic: {0: 0}}
    cluster.grow(topic, 3)
    grown = await_ends((topic,), lambda answer: len(answer.stable.get(topic, {})) == 3)
    assert grown.missing == frozenset()
    send(cluster, topic, 2)
    assert reader.read((topic,), TIMEOUT_S).stable == {topic: {0: 0, 1: 0, 2: 1}}


def test_a_topic_may_be_deleted_and_created_again(
    cluster: Cluster, reader: EndsReader, await_ends: Await
) -> None:
    """Its ends are those of the new topic; a deleted one is absent, and other topics stay."""
    topic, other = cluster.topic(2), cluster.topic(1)
    send(cluster, topic)
    assert reader.read((topic, other), TIMEOUT_S).stable == {topic: {0: 1, 1: 0}, other: {0: 0}}
    cluster.admin.delete_topics((topic,))
    # A broker may answer for the deleted topic for a moment.
    gone = await_ends(
        (topic, other), lambda answer: answer.stable.keys() == {other} and not answer.missing
    )
    assert gone.stable == gone.written == {other: {0: Offset(0)}}
    cluster.admin.create_topics((NewTopicSpec(topic, 1, 1),))
    again = await_ends((topic, other), lambda answer: topic in answer.stable)
    assert again.stable == again.written == {topic: {0: 0}, other: {0: 0}}
    assert again.late == {}


def test_a_closed_reader_cannot_be_read(cluster: Cluster) -> None:
    """A second close does nothing."""
    reader = cluster.kafka.ends_reader()
    reader.close()
    reader.close()
    with pytest.raises(BrokenInvariantError, match="closed"):
        reader.read((MISSING,), TIMEOUT_S)

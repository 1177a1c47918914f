from collections.abc import Iterable

import pytest

from brokers.kafka_interface import Describing, NoSuchTopicError
from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.errors import RefusedError
from pipeline.ids import TopicName
from pipeline.spark.run.topic_identity import TopicWatch
from pipeline.system_clock import SystemClock
from tests.unit.kafka import create

IN, OUT, BESIDE = TopicName("in"), TopicName("out"), TopicName("out.boundaries")


class Kafka(MemoryKafka):
    """A cluster that responds when the test requires it."""

    def __init__(self, *topics: TopicName) -> None:
        super().__init__(SystemClock())
        self.answers = True
        self.asked = 0
        create(self, *topics)

    def create_again(self, topic: TopicName) -> None:
        """Recreate the topic with another id."""
        self.delete_topics((topic,))
        create(self, topic)

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """The topics at the time of the request."""
        self.asked += 1
        request = super().begin_describing(topics)
        return Describing(done=lambda: self.answers, result=request.result)


def watch(kafka: Kafka) -> TopicWatch:
    """A lane of two topics that has the first one's id; a third one may be recreated."""
    expected = {IN: kafka.topics[IN].topic_id}
    return TopicWatch(kafka, (IN, OUT), expected, replaceable=(BESIDE,))


def test_a_recreated_topic_is_refused() -> None:
    """With its name; one without a known id may be any."""
    kafka = Kafka(IN, OUT)
    watched = watch(kafka)
    watched.ask()()
    kafka.create_again(IN)
    answer = watched.ask()
    with pytest.raises(RefusedError, match="deleted and made again") as caught:
        answer()
    assert caught.value.place == "topic in"
    for choice in ("--input STREAM=end", "--state", "destroy the network"):
        assert choice in caught.value.hint


def test_a_missing_topic_is_waited_for() -> None:
    """It may be under creation, or one that the broker has not loaded yet."""
    with pytest.raises(NoSuchTopicError) as caught:
        watch(Kafka(IN)).ask()()
    assert caught.value.place == "topic out"
    assert caught.value.external


def test_a_check_never_waits() -> None:
    """It evaluates the response to the previous request, once that has arrived."""
    kafka = Kafka(IN, OUT)
    watched = watch(kafka)
    kafka.create_again(IN)
    kafka.answers = False
    watched.poll()
    watched.poll()
    assert kafka.asked == 1
    kafka.answers = True
    with pytest.raises(RefusedError):
        watched.poll()


def test_a_topic_that_may_be_recreated_is_only_described() -> None:
    """Whether it is missing, or another one by now."""
    kafka = Kafka(IN, OUT, BESIDE)
    watched = watch(kafka)
    assert (watched.answered, watched.last(BESIDE)) == (False, None)
    watched.ask()()
    first = watched.last(BESIDE)
    assert first == kafka.describe((BESIDE,))[BESIDE]
    kafka.delete_topics((BESIDE,))
    watched.ask()()
    assert (watched.answered, watched.last(BESIDE)) == (True, None)
    create(kafka, BESIDE)
    watched.poll()
    watched.poll()
    assert watched.last(BESIDE) == kafka.describe((BESIDE,))[BESIDE] != first

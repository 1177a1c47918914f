from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from brokers.kafka.admin import Describing
from brokers.kafka.errors import NoSuchTopicError
from brokers.records import TopicDescription
from pipeline.errors import RefusedError
from pipeline.ids import TopicName
from pipeline.spark.run.topics import TopicWatch

IN, OUT, BESIDE = TopicName("in"), TopicName("out"), TopicName("out.boundaries")


@dataclass
class Kafka:
    """Topics by their ids; answers when it is told to."""

    ids: dict[TopicName, str]
    answers: bool = True
    asked: int = 0

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """What there is when it is asked."""
        self.asked += 1
        found = {t: TopicDescription(t, self.ids[t], 1) for t in topics if t in self.ids}
        return Describing(done=lambda: self.answers, result=lambda: found)


def watch(kafka: Kafka) -> TopicWatch:
    """A lane of two topics that knows the first one's id; a third one may be created again."""
    return TopicWatch(kafka, (IN, OUT), {IN: "1"}, replaceable=(BESIDE,))


def test_a_topic_that_was_made_again_is_refused() -> None:
    """With its name; one that nothing is known of may be any."""
    kafka = Kafka({IN: "1", OUT: "7"})
    watched = watch(kafka)
    watched.ask()()
    kafka.ids[IN] = "2"
    answer = watched.ask()
    with pytest.raises(RefusedError, match="deleted and made again") as caught:
        answer()
    assert caught.value.place == "topic in"
    for choice in ("--input STREAM=end", "--state", "destroy the network"):
        assert choice in caught.value.hint


def test_a_topic_that_is_gone_is_waited_for() -> None:
    """It may be on its way, or one that the broker does not know yet."""
    with pytest.raises(NoSuchTopicError) as caught:
        watch(Kafka({IN: "1"})).ask()()
    assert caught.value.place == "topic out"
    assert caught.value.external


def test_a_look_never_waits() -> None:
    """It judges the answer to the look before, once that is there."""
    kafka = Kafka({IN: "2", OUT: "7"}, answers=False)
    watched = watch(kafka)
    watched.look()
    watched.look()
    assert kafka.asked == 1
    kafka.answers = True
    with pytest.raises(RefusedError):
        watched.look()


def test_a_topic_that_may_be_created_again_is_only_described() -> None:
    """Whether it is gone, or another one by now."""
    kafka = Kafka({IN: "1", OUT: "7", BESIDE: "3"})
    watched = watch(kafka)
    assert (watched.answered, watched.last(BESIDE)) == (False, None)
    watched.ask()()
    assert watched.last(BESIDE) == TopicDescription(BESIDE, "3", 1)
    del kafka.ids[BESIDE]
    watched.ask()()
    assert (watched.answered, watched.last(BESIDE)) == (True, None)
    kafka.ids[BESIDE] = "4"
    watched.look()
    watched.look()
    assert watched.last(BESIDE) == TopicDescription(BESIDE, "4", 1)

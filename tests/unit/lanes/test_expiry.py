"""The search for expiring records in the topics of a lane."""

import pytest

from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import NewTopicSpec
from pipeline.errors import UnavailableError
from pipeline.ids import Millis, Offset, TopicId, TopicName
from pipeline.lanes.expiring import Cause, LogNeeds, TopicNeeds, Use
from pipeline.lanes.expiry import find_expiring
from tests.unit.deploy.twins import NOW, TwinClock
from tests.unit.kafka import Leaderless

OLD, OTHER = TopicName("old"), TopicName("other")
DAY = 86_400_000


class Counting(Leaderless):
    """Counts requests for offsets by time; they fail when asked for."""

    asked = 0
    fails = False

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> dict[int, Offset]:
        """Count one request."""
        if self.fails:
            raise UnavailableError("no answer")
        self.asked += 1
        return dict(super().offsets_for_time(topic, time_ms))


@pytest.fixture
def kafka() -> Counting:
    """Two topics of one partition with two records; those of one topic are five days old."""
    clock = TwinClock()
    found = Counting(clock)
    config = (("retention.ms", str(7 * DAY)),)
    found.create_topics(tuple(NewTopicSpec(topic, 1, 1, config) for topic in (OLD, OTHER)))
    for topic, wait_s in ((OLD, 5 * DAY / 1000), (OTHER, 0)):
        for _ in range(2):
            found.append(topic, None, b"")
        clock.sleep(wait_s)
    return found


def needs(kafka: MemoryKafka, position: int) -> LogNeeds:
    """Positions in both topics."""
    ids = {topic: TopicId(kafka.topics[topic].topic_id) for topic in (OLD, OTHER)}
    return LogNeeds({t: TopicNeeds(i, {0: Offset(position)}) for t, i in ids.items()})


def test_only_topics_with_old_unread_records_are_reported(kafka: Counting) -> None:
    """A lane that has read everything costs no request by time."""
    now_ms = kafka.clock.now_ms()
    (found,) = find_expiring(kafka, needs(kafka, 1), now_ms)
    assert (found.topic, found.use, found.cause) == (OLD, Use.UNREAD, Cause.AGE)
    assert found.oldest_ms is not None
    assert found.oldest_ms <= NOW
    kafka.asked = 0
    assert find_expiring(kafka, needs(kafka, 2), now_ms) == ()
    assert kafka.asked == 0
    assert find_expiring(kafka, LogNeeds({}), now_ms) == ()


def test_removed_records_are_reported_without_their_age(kafka: Counting) -> None:
    """Also those that were removed by hand."""
    kafka.delete_records(OTHER, {0: Offset(2)})
    found = find_expiring(kafka, needs(kafka, 1), kafka.clock.now_ms())
    assert {one.topic: one.cause for one in found} == {OLD: Cause.AGE, OTHER: Cause.REMOVED}


def test_a_topic_that_was_made_again_or_is_gone_is_not_examined(kafka: Counting) -> None:
    """Its offsets are those of other records."""
    of = needs(kafka, 1)
    kafka.delete_topics((OLD,))
    assert find_expiring(kafka, of, kafka.clock.now_ms()) == ()
    kafka.create_topics((NewTopicSpec(OLD, 1, 1, ()),))
    assert find_expiring(kafka, of, kafka.clock.now_ms()) == ()


def test_a_topic_without_a_leader_is_judged_by_what_was_seen(kafka: Counting) -> None:
    """Its settings are known all the same."""
    now_ms, of = kafka.clock.now_ms(), needs(kafka, 1)
    kafka.leaderless = (OLD,)
    assert find_expiring(kafka, of, now_ms) == ()
    seen = TopicNeeds(of.topics[OLD].topic_id, {0: Offset(1)}, unread_since={0: NOW})
    (found,) = find_expiring(kafka, LogNeeds({OLD: seen}, running=True), now_ms)
    assert (found.partitions, found.oldest_ms) == ((0,), NOW)


def test_a_kafka_that_does_not_answer_is_an_error(kafka: Counting) -> None:
    """The caller decides that it matters little."""
    kafka.fails = True
    with pytest.raises(UnavailableError):
        find_expiring(kafka, needs(kafka, 1), kafka.clock.now_ms())

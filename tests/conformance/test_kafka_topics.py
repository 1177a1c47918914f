"""Administration of topics and groups, in memory and on a real broker."""

import pytest

from brokers.kafka_interface import Isolation, NoSuchTopicError, OffsetGoneError
from brokers.memory_kafka.cluster import DEFAULTS
from brokers.records import NewTopicSpec, TopicDescription
from pipeline.errors import MedusaError, RefusedError, UnavailableError
from pipeline.ids import GroupName, Millis, Offset, TopicName
from tests.conformance.conftest import TIMEOUT_S, Cluster, deadline, fresh_topic, started
from tests.conftest import WaitFor

MISSING = TopicName("there-is-no-such-topic")


def fill(cluster: Cluster, topic: TopicName, times_ms: tuple[int, ...]) -> None:
    """Send a record for each of these times to partition 0."""
    writer = cluster.kafka.producer(TIMEOUT_S)
    for time_ms in times_ms:
        writer.send(topic, None, b"x", timestamp_ms=Millis(time_ms), partition=0)
    writer.flush(TIMEOUT_S)
    writer.close()


def test_creation_of_topics_is_idempotent(cluster: Cluster) -> None:
    """Only missing topics are created; existing ones keep partitions, settings and id."""
    admin, old, new = cluster.admin, fresh_topic(), fresh_topic()
    spec = NewTopicSpec(old, 3, 1, (("retention.ms", "123000"),))
    assert admin.create_topics((spec,)) == (old,)
    before = admin.describe((old,))
    changed = NewTopicSpec(old, 5, 1, (("retention.ms", "456000"),))
    assert admin.create_topics((changed, NewTopicSpec(new, 1, 1))) == (new,)
    assert admin.create_topics((changed,)) == ()
    assert admin.create_topics(()) == ()
    assert admin.describe((old,)) == before
    assert before[old].partitions == 3
    assert admin.topic_configs((old, MISSING))[old]["retention.ms"] == "123000"
    assert {old, new} <= set(admin.topic_names())
    assert list(admin.topic_names()) == sorted(admin.topic_names())


def test_settings_include_the_defaults(cluster: Cluster) -> None:
    """Of all settings that Medusa reads."""
    topic = fresh_topic()
    cluster.admin.create_topics((NewTopicSpec(topic, 1, 1),))
    found = cluster.admin.topic_configs((topic,))[topic]
    assert {name: found[name] for name in DEFAULTS} == DEFAULTS


def test_a_recreated_topic_has_another_id(cluster: Cluster) -> None:
    """A topic is deleted when the call returns, and its successor has another id."""
    admin, topic = cluster.admin, cluster.topic()
    fill(cluster, topic, (1,))
    first = admin.describe((topic,))[topic]
    assert admin.delete_topics((topic, MISSING)) == (topic,)
    assert admin.describe((topic,)) == {}
    assert admin.create_topics((NewTopicSpec(topic, 1, 1),)) == (topic,)
    second = admin.describe((topic,))[topic]
    assert first.topic_id != second.topic_id
    assert second == TopicDescription(topic, second.topic_id, 1, 1)
    assert admin.end_offsets((topic,)) == {topic: {0: 0}}


def test_a_description_is_not_older_than_its_request(cluster: Cluster) -> None:
    """Also if its result is awaited later."""
    topic = cluster.topic()
    pending = cluster.admin.begin_describing((topic, MISSING))
    assert pending.result() == cluster.admin.describe((topic,))
    assert pending.done()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (NewTopicSpec(TopicName("not a name"), 1, 1), "the name of the topic"),
        (NewTopicSpec(TopicName("conformance-bad"), 0, 1), "partitions"),
    ],
)
def test_a_rejected_topic_is_named_in_the_error(
    cluster: Cluster, spec: NewTopicSpec, words: str
) -> None:
    """The error contains the reason, and the topic's name as its place."""
    with pytest.raises(RefusedError, match=words) as caught:
        cluster.admin.create_topics((spec,))
    assert spec.name in caught.value.place


def test_missing_topics_are_left_out_of_results(cluster: Cluster) -> None:
    """A request for several topics returns those that exist."""
    admin, topic = cluster.admin, cluster.topic()
    assert admin.end_offsets((topic, MISSING)) == {topic: {0: 0, 1: 0}}
    assert admin.start_offsets((MISSING, topic)) == {topic: {0: 0, 1: 0}}
    assert admin.end_offsets((MISSING,), Isolation.UNCOMMITTED) == {}
    assert admin.topic_configs((MISSING,)) == {}
    assert MISSING not in admin.topic_names()
    with pytest.raises(NoSuchTopicError):
        admin.offsets_for_time(MISSING, Millis(0))
    with pytest.raises(UnavailableError):  # the driver finds no leader
        admin.delete_records(MISSING, {0: Offset(0)})
    with pytest.raises(UnavailableError):
        admin.partition_ends(MISSING, 1, Isolation.COMMITTED)
    assert not cluster.admin_within(2.0).await_decided(MISSING)


def test_committed_ends_stop_at_an_open_transaction(cluster: Cluster, wait_for: WaitFor) -> None:
    """The committed end is that of a committed reader; the other end includes all offsets."""
    admin, topic = cluster.admin, cluster.topic()
    with started(cluster, topic) as writer:
        writer.begin()
        writer.send(topic, None, b"x", timestamp_ms=1, partition=0)
        writer.commit(deadline())
        assert admin.await_decided(topic)
        writer.begin()
        writer.send(topic, None, b"x", timestamp_ms=1, partition=0)
        stable, written = {0: Offset(2), 1: Offset(0)}, {0: Offset(3), 1: Offset(0)}
        wait_for(
            lambda: admin.end_offsets((topic,), Isolation.UNCOMMITTED) == {topic: written},
            "delivered",
        )
        assert admin.end_offsets((topic,)) == {topic: stable}
        assert admin.partition_ends(topic, 2, Isolation.COMMITTED) == stable
        assert admin.partition_ends(topic, 1, Isolation.UNCOMMITTED) == {0: 3}
        for isolation, end in ((Isolation.COMMITTED, 2), (Isolation.UNCOMMITTED, 3)):
            with cluster.kafka.reader(TIMEOUT_S, isolation=isolation) as reader:
                assert reader.bounds(topic, 0) == (0, end)
                assert reader.bounds(topic, 1) == (0, 0)
        assert not cluster.admin_within(1.0).await_decided(topic)
        writer.abort(deadline())
    assert admin.await_decided(topic)
    assert admin.end_offsets((topic,)) == {topic: {0: 4, 1: 0}}


def test_offsets_can_be_found_by_time(cluster: Cluster) -> None:
    """The first record at or after a time, in the order of the log; the end where there is none."""
    admin, topic = cluster.admin, cluster.topic()
    fill(cluster, topic, (1_000, 3_000, 2_000))
    assert admin.offsets_for_time(topic, Millis(0)) == {0: 0, 1: 0}
    assert admin.offsets_for_time(topic, Millis(1_001)) == {0: 1, 1: 0}
    assert admin.offsets_for_time(topic, Millis(9_000)) == {0: 3, 1: 0}


def test_offsets_by_time_count_control_records(cluster: Cluster) -> None:
    """They have the broker's time; a record after an open transaction is not found."""
    admin, topic = cluster.admin, cluster.topic(1)
    with started(cluster, topic) as writer:
        writer.begin()
        writer.send(topic, None, b"x", timestamp_ms=1_000, partition=0)
        writer.commit(deadline())
    assert admin.await_decided(topic)
    assert admin.offsets_for_time(topic, Millis(1_000)) == {0: 0}
    assert admin.offsets_for_time(topic, Millis(2_000)) == {0: 1}


def test_deleted_records_stay_deleted(cluster: Cluster) -> None:
    """Deletion below an offset of each partition."""
    admin, topic = cluster.admin, cluster.topic()
    fill(cluster, topic, (1_000, 2_000, 3_000))
    admin.delete_records(topic, {0: Offset(2)})
    admin.delete_records(topic, {0: Offset(1)})
    admin.delete_records(topic, {})
    assert admin.start_offsets((topic,)) == {topic: {0: 2, 1: 0}}
    assert admin.end_offsets((topic,)) == {topic: {0: 3, 1: 0}}
    assert admin.offsets_for_time(topic, Millis(0)) == {0: 2, 1: 0}
    with cluster.kafka.reader(TIMEOUT_S) as reader:
        assert reader.bounds(topic, 0) == (2, 3)
    admin.delete_records(topic, {0: Offset(3)})
    assert admin.start_offsets((topic,)) == {topic: {0: 3, 1: 0}}
    with pytest.raises(OffsetGoneError):
        admin.delete_records(topic, {0: Offset(9)})


def test_a_group_is_deleted_if_it_exists(cluster: Cluster, wait_for: WaitFor) -> None:
    """Setting its offsets creates it; deletion returns whether it existed."""
    admin, topic = cluster.admin, cluster.topic()
    group = GroupName(f"{topic}.group")
    assert admin.delete_group(group) is False
    writer = cluster.kafka.group_writer(group)
    answers: list[MedusaError | None] = []
    writer.commit({topic: {0: Offset(0)}}, answers.append)

    def answered() -> bool:
        writer.poll()
        return answers == [None]

    wait_for(answered, "the offsets are set")
    writer.close()
    assert admin.delete_group(group) is True
    assert admin.delete_group(group) is False

"""The Kafka clients on a real broker."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka import TopicPartition as Place

from brokers.embedded.stack import EmbeddedStack
from brokers.kafka.admin import Isolation, KafkaAdmin
from brokers.kafka.config import RECORD_BYTES_MAX
from brokers.kafka.errors import (
    NoAccessListsError,
    NoSuchTopicError,
    OffsetGoneError,
    RecordTooLargeError,
)
from brokers.kafka.producer import PlainProducer
from brokers.kafka.reader import TopicReader, read_last, read_range
from brokers.kafka.rights import KafkaRights
from brokers.kafka.servers import KafkaServers
from brokers.kafka.transactions import TransactionalWriter
from brokers.records import KafkaRecord, NewTopicSpec
from pipeline.clock import Deadline, SystemClock
from pipeline.errors import FencedError, RefusedError, RetryError
from pipeline.ids import GroupName, Millis, Offset, TopicName, TransactionalId
from tests.conftest import WaitFor

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]

TIMEOUT_S = 10.0
SHORT_S = 1.0
NEVER_S = 300.0
"""A limit of a call that must not wait: the test's own deadline is over long before."""
MISSING = TopicName("there-is-no-such-topic")
KEYS_BY_MURMUR2 = {0: [b"k3", b"k4", b"k5"], 1: [b"k0", b"k1", b"k2"]}
"""(murmur2(key) & 0x7fffffff) % 2, computed apart from any client."""


@pytest.fixture(scope="module")
def bootstrap(embedded_stack: EmbeddedStack) -> str:
    """The broker's address."""
    return embedded_stack.settings.kafka_bootstrap_servers


@pytest.fixture(scope="module")
def admin(bootstrap: str) -> KafkaAdmin:
    """An administrative connection."""
    return KafkaAdmin(bootstrap, TIMEOUT_S)


@pytest.fixture
def topic(admin: KafkaAdmin) -> TopicName:
    """A topic of two partitions of the test's own."""
    name = fresh()
    admin.create_topics((NewTopicSpec(name, 2, 1),))
    return name


@pytest.fixture
def producer(bootstrap: str) -> Iterator[PlainProducer]:
    """A plain producer."""
    opened = PlainProducer(bootstrap, TIMEOUT_S)
    yield opened
    opened.close()


def fresh() -> TopicName:
    """A name that nothing else uses."""
    return TopicName(f"brokers-{uuid.uuid4().hex}")


def transactions(bootstrap: str, topic: TopicName, *outcomes: bool) -> Producer:
    """One record in one transaction each: committed where true, else aborted."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": str(topic), "retry.backoff.ms": 10}
    )
    producer.init_transactions(TIMEOUT_S)
    for number, commit in enumerate(outcomes):
        producer.begin_transaction()
        producer.produce(topic, value=str(number).encode(), partition=0)
        producer.flush(TIMEOUT_S)
        if commit:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    return producer


def values(records: Iterator[KafkaRecord] | tuple[KafkaRecord, ...]) -> list[bytes | None]:
    """The values of some records."""
    return [record.value for record in records]


def test_brokers_without_access_lists_say_so(bootstrap: str) -> None:
    """Though the driver makes an empty list of it."""
    found = KafkaRights(KafkaServers(bootstrap), TIMEOUT_S).topic_rules()
    assert isinstance(found, NoAccessListsError)


def test_topics_are_created_once_and_never_changed(admin: KafkaAdmin) -> None:
    """Only missing topics are created; what exists keeps its partitions, settings and id."""
    old, new = fresh(), fresh()
    spec = NewTopicSpec(old, 3, 1, (("retention.ms", "123000"),))
    assert admin.create_topics((spec,)) == (old,)
    before = admin.describe((old,))
    changed = NewTopicSpec(old, 5, 1, (("retention.ms", "456000"),))
    assert admin.create_topics((changed, NewTopicSpec(new, 1, 1))) == (new,)
    assert admin.create_topics((changed,)) == ()
    assert admin.describe((old,)) == before
    assert before[old].partitions == 3
    assert admin.topic_configs((old, MISSING))[old]["retention.ms"] == "123000"


def test_a_topic_made_again_has_another_id(admin: KafkaAdmin, topic: TopicName) -> None:
    """A deleted topic is gone when the call returns, and its successor can be told from it."""
    first = admin.describe((topic,))[topic]
    assert admin.delete_topics((topic, MISSING)) == (topic,)
    assert admin.describe((topic,)) == {}
    admin.create_topics((NewTopicSpec(topic, 2, 1),))
    second = admin.describe((topic,))[topic]
    assert first.topic_id != second.topic_id
    assert len(first.topic_id) == 22


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (NewTopicSpec(TopicName("not a name"), 1, 1), "the name of the topic"),
        (NewTopicSpec(TopicName("brokers-bad"), 0, 1), "partitions"),
        (NewTopicSpec(TopicName("brokers-bad"), 1, 7), "the replication factor"),
        (NewTopicSpec(TopicName("brokers-bad"), 1, 1, (("no.such", "1"),)), "no.such"),
    ],
)
def test_a_topic_that_kafka_refuses_is_named(
    admin: KafkaAdmin, spec: NewTopicSpec, words: str
) -> None:
    """What is wrong with a topic is said in words, with its name as the place."""
    with pytest.raises(RefusedError, match=words) as caught:
        admin.create_topics((spec,))
    assert spec.name in caught.value.place


def test_missing_topics_are_missing_in_answers(admin: KafkaAdmin, topic: TopicName) -> None:
    """Asking for several topics answers for those that exist."""
    ends = admin.end_offsets((topic, MISSING))
    assert ends == {topic: {0: 0, 1: 0}}
    assert admin.start_offsets((MISSING,)) == {}
    assert admin.topic_configs((MISSING,)) == {}
    assert topic in admin.topic_names()
    assert MISSING not in admin.topic_names()
    with pytest.raises(NoSuchTopicError):
        admin.offsets_for_time(MISSING, Millis(0))


def test_committed_ends_stop_at_an_open_transaction(
    admin: KafkaAdmin, bootstrap: str, topic: TopicName
) -> None:
    """The committed end is what a committed reader can reach; the other counts all offsets."""
    producer = transactions(bootstrap, topic, True)
    producer.begin_transaction()
    producer.produce(topic, value=b"open", partition=0)
    producer.flush(TIMEOUT_S)
    assert admin.end_offsets((topic,))[topic] == {0: 2, 1: 0}
    assert admin.end_offsets((topic,), Isolation.UNCOMMITTED)[topic] == {0: 3, 1: 0}
    with TopicReader(bootstrap, TIMEOUT_S) as reader:
        assert reader.bounds(topic, 0) == (0, 2)
    assert not KafkaAdmin(bootstrap, timeout_s=1).await_decided(topic)
    producer.abort_transaction(TIMEOUT_S)
    assert admin.await_decided(topic)
    assert admin.end_offsets((topic,))[topic] == {0: 4, 1: 0}


def test_offsets_can_be_found_by_time(
    admin: KafkaAdmin, producer: PlainProducer, topic: TopicName
) -> None:
    """The first record at or after a time; the end where there is none."""
    for at_ms in (1_000, 2_000, 3_000):
        producer.send(topic, None, b"x", timestamp_ms=Millis(at_ms), partition=0)
    producer.flush(TIMEOUT_S)
    assert admin.offsets_for_time(topic, Millis(0)) == {0: 0, 1: 0}
    assert admin.offsets_for_time(topic, Millis(1_001)) == {0: 1, 1: 0}
    assert admin.offsets_for_time(topic, Millis(9_000)) == {0: 3, 1: 0}


def test_a_group_is_deleted_if_there_is_one(
    admin: KafkaAdmin, bootstrap: str, topic: TopicName
) -> None:
    """Deleting says whether there was a group."""
    group = GroupName(f"{topic}.group")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.commit(offsets=[Place(topic, 0, 0)], asynchronous=False)
    consumer.close()
    assert admin.delete_group(group) is True
    assert admin.delete_group(group) is False


def test_a_record_is_read_as_it_was_sent(
    bootstrap: str, producer: PlainProducer, topic: TopicName
) -> None:
    """Key, value, time and headers, repeated and empty ones too, come back in full."""
    headers = (("h", b"1"), ("h", b"2"), ("none", None))
    producer.send(topic, b"k", b"v", headers=headers, timestamp_ms=Millis(5), partition=1)
    producer.send(topic, None, None, timestamp_ms=Millis(6), partition=1)
    producer.flush(TIMEOUT_S)
    found = list(read_range(bootstrap, {topic: {1: (Offset(0), Offset(2))}}, TIMEOUT_S))
    assert found == [
        KafkaRecord(topic, 1, Offset(0), Millis(5), b"k", b"v", headers),
        KafkaRecord(topic, 1, Offset(1), Millis(6), None, None, ()),
    ]


def test_a_key_goes_to_the_partition_that_java_clients_choose(
    bootstrap: str, producer: PlainProducer, topic: TopicName
) -> None:
    """Producers of other makes agree with ours on the partition of a key (murmur2)."""
    for number in range(6):
        producer.send(topic, f"k{number}".encode(), b"")
    producer.flush(TIMEOUT_S)
    ends = {part: (Offset(0), Offset(3)) for part in (0, 1)}
    found = list(read_range(bootstrap, {topic: ends}, TIMEOUT_S))
    keys = {part: [r.key for r in found if r.partition == part] for part in (0, 1)}
    assert keys == KEYS_BY_MURMUR2


def test_a_range_ends_where_it_should(
    bootstrap: str, producer: PlainProducer, topic: TopicName
) -> None:
    """Records before the end are read, none at or after it, in several partitions at once."""
    for number in range(10):
        producer.send(topic, None, str(number).encode(), partition=number % 2)
    producer.flush(TIMEOUT_S)
    ranges = {topic: {0: (Offset(1), Offset(3)), 1: (Offset(4), Offset(5))}}
    found = list(read_range(bootstrap, ranges, TIMEOUT_S))
    assert {(r.partition, r.offset) for r in found} == {(0, 1), (0, 2), (1, 4)}


def test_a_range_ends_in_a_gap(bootstrap: str, topic: TopicName) -> None:
    """Markers and aborted records at the end of a range do not make it wait."""
    transactions(bootstrap, topic, True, False, True, False, False)
    found = read_range(bootstrap, {topic: {0: (Offset(0), Offset(10))}}, NEVER_S)
    assert values(found) == [b"0", b"2"]
    middle = read_range(bootstrap, {topic: {0: (Offset(1), Offset(4))}}, NEVER_S)
    assert values(middle) == []
    both = Isolation.UNCOMMITTED
    all_of_them = {topic: {0: (Offset(0), Offset(10))}}
    assert len(list(read_range(bootstrap, all_of_them, NEVER_S, isolation=both))) == 5


def test_the_last_records_are_found_behind_gaps(bootstrap: str, topic: TopicName) -> None:
    """However many offsets without a record follow, the last committed ones are found."""
    assert read_last(bootstrap, topic, 0, 3, TIMEOUT_S) == ()
    transactions(bootstrap, topic, True, True, *[False] * 60, True, False)
    assert values(read_last(bootstrap, topic, 0, 1, TIMEOUT_S)) == [b"62"]
    assert values(read_last(bootstrap, topic, 0, 2, TIMEOUT_S)) == [b"1", b"62"]
    assert values(read_last(bootstrap, topic, 0, 9, TIMEOUT_S)) == [b"0", b"1", b"62"]


def test_a_range_held_back_by_a_transaction_is_given_up(bootstrap: str, topic: TopicName) -> None:
    """Waiting for what cannot be seen ends, and says up to where it waited."""
    producer = transactions(bootstrap, topic, True)
    producer.begin_transaction()
    producer.produce(topic, value=b"open", partition=0)
    producer.flush(TIMEOUT_S)
    with pytest.raises(RetryError, match="partition 0 up to 3"):
        list(read_range(bootstrap, {topic: {0: (Offset(0), Offset(3))}}, SHORT_S))
    producer.abort_transaction(TIMEOUT_S)


def test_what_cannot_be_read_is_told(bootstrap: str, topic: TopicName) -> None:
    """A missing topic, a missing partition and an offset beyond the end are named."""
    with pytest.raises(NoSuchTopicError, match=MISSING):
        list(read_range(bootstrap, {MISSING: {0: (Offset(0), Offset(1))}}, SHORT_S))
    with pytest.raises(NoSuchTopicError, match="partition 9"):
        list(read_range(bootstrap, {topic: {9: (Offset(0), Offset(1))}}, SHORT_S))
    with pytest.raises(NoSuchTopicError, match=MISSING):
        read_last(bootstrap, MISSING, 0, 1, SHORT_S)
    with pytest.raises(OffsetGoneError):
        list(read_range(bootstrap, {topic: {0: (Offset(50), Offset(60))}}, TIMEOUT_S))


def test_a_reader_follows_a_topic(
    bootstrap: str, producer: PlainProducer, topic: TopicName
) -> None:
    """Records come soon after they are sent, and the positions follow them."""
    with TopicReader(bootstrap, TIMEOUT_S) as reader:
        reader.assign({topic: {0: Offset(0), 1: Offset(0)}})
        for number in range(3):
            producer.send(topic, None, str(number).encode(), partition=0)
            assert values(tuple(until_some(reader))) == [str(number).encode()]
        assert reader.positions == {topic: {0: 3, 1: 0}}
        assert reader.poll(0.05) == ()


def test_positions_pass_over_gaps_at_the_end(
    bootstrap: str, topic: TopicName, wait_for: WaitFor
) -> None:
    """A reader that has seen everything stands at the end, beyond markers and aborted records."""
    transactions(bootstrap, topic, True, False)
    with TopicReader(bootstrap, TIMEOUT_S) as reader:
        reader.assign({topic: {0: Offset(0)}})
        assert values(until_some(reader)) == [b"0"]
        wait_for(lambda: reader.poll(0.1) == () and reader.positions[topic][0] == 4, "the end")


def test_a_reader_goes_on_when_the_broker_is_back(
    bootstrap: str, producer: PlainProducer, topic: TopicName
) -> None:
    """After all brokers were down a reader asks for metadata, and reads on if that is answered."""
    with TopicReader(bootstrap, TIMEOUT_S) as reader:
        reader.assign({topic: {0: Offset(0)}})
        reader._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        producer.send(topic, None, b"after", partition=0)
        assert values(until_some(reader)) == [b"after"]


def test_a_record_for_a_missing_topic_is_not_lost_in_silence(producer: PlainProducer) -> None:
    """The flush after a failed delivery says which topic is missing."""
    producer.send(MISSING, None, b"x")
    with pytest.raises(NoSuchTopicError) as caught:
        producer.flush(TIMEOUT_S)
    assert MISSING in caught.value.place


def test_a_record_that_is_too_large_is_refused(producer: PlainProducer, topic: TopicName) -> None:
    """A record that Kafka would not take is refused where it is sent."""
    with pytest.raises(RefusedError, match="larger"):
        producer.send(topic, None, b"x" * (RECORD_BYTES_MAX + 1))


@pytest.mark.parametrize("sizes", [(2_000_000, 1), (1, 1_500_000, 900_000, 1)])
def test_what_stands_behind_a_refused_record_holds_nothing_up(
    bootstrap: str, topic: TopicName, sizes: tuple[int, ...]
) -> None:
    """The transaction says which record it was, can be aborted, and the next one is written.

    What is sent after the broker has refused the record says so, too.
    """
    writer = TransactionalWriter(bootstrap, TransactionalId(topic))
    writer.start(Deadline.after(SystemClock(), TIMEOUT_S, "starting"))

    def write() -> None:
        for size in sizes:
            writer.send(topic, None, b"x" * size, timestamp_ms=1, partition=0)
        writer.commit(Deadline.after(SystemClock(), TIMEOUT_S, "committing"))

    for _ in range(5):
        writer.begin()
        with pytest.raises(RecordTooLargeError, match=f"a record of {max(sizes)} bytes"):
            write()
        writer.abort(Deadline.after(SystemClock(), TIMEOUT_S, "aborting"))
    writer.begin()
    writer.send(topic, None, b"small", timestamp_ms=1, partition=0)
    writer.commit(Deadline.after(SystemClock(), TIMEOUT_S, "committing"))
    writer.close()
    (record,) = read_last(bootstrap, topic, 0, 5, TIMEOUT_S)
    assert record.value == b"small"


def until_some(reader: TopicReader) -> tuple[KafkaRecord, ...]:
    """The first records that come within ten seconds."""
    for _ in range(100):
        found = reader.poll(0.1)
        if found:
            return found
    pytest.fail("no record within ten seconds")


def test_a_writer_that_is_fenced_while_it_sends_is_told_so(
    bootstrap: str, topic: TopicName, wait_for: WaitFor
) -> None:
    """By every call from then on, and never in the driver's own words."""
    old, new = (TransactionalWriter(bootstrap, TransactionalId(topic)) for _ in range(2))
    old.start(Deadline.after(SystemClock(), TIMEOUT_S, "starting"))
    old.begin()
    old.send(topic, None, b"sent", timestamp_ms=1)
    new.start(Deadline.after(SystemClock(), TIMEOUT_S, "fencing"))

    def fenced() -> bool:
        try:
            old.send(topic, None, b"too late", timestamp_ms=1)
        except FencedError:
            return True
        return False

    wait_for(fenced, "the first writer hears of it", within_s=TIMEOUT_S)
    with pytest.raises(FencedError):
        old.send_many(topic, [(None, b"too late", 1, 0)])
    with pytest.raises(FencedError):
        old.commit(Deadline.after(SystemClock(), TIMEOUT_S, "committing"))
    old.close()
    new.close()
    assert read_last(bootstrap, topic, 0, 1, TIMEOUT_S) == ()

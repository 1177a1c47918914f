"""Reading and writing of records, in memory and on a real broker."""

from collections.abc import Mapping

import pytest

from brokers.kafka_interface import (
    BEGINNING,
    FETCH_WAIT_RANGE_MS,
    Isolation,
    NoSuchTopicError,
    NotNowError,
    OffsetGoneError,
    RecordReader,
)
from brokers.log_reader import LogReader
from brokers.records import Ends, KafkaRecord
from pipeline.errors import FencedError
from pipeline.ids import Millis, Offset, TopicName
from tests.conformance.conftest import TIMEOUT_S, Cluster, deadline, started
from tests.conftest import WaitFor

pytestmark = pytest.mark.timeout(120)

SHORT_S = 1.0
NEVER_S = 300.0
"""Timeout of a call that must not wait: the test's own timeout is much shorter."""
MISSING = TopicName("there-is-no-such-topic")
KEYS_BY_MURMUR2 = {0: [b"k3", b"k4", b"k5"], 1: [b"k0", b"k1", b"k2"]}
"""(murmur2(key) & 0x7fffffff) % 2, computed without a client."""
Ranges = Mapping[int, tuple[int, int]]


def transactions(cluster: Cluster, topic: TopicName, *outcomes: bool) -> None:
    """Send one record per transaction: committed where true, else aborted."""
    with started(cluster, topic) as writer:
        for number, commit in enumerate(outcomes):
            writer.begin()
            writer.send(topic, None, str(number).encode(), timestamp_ms=1, partition=0)
            if commit:
                writer.commit(deadline())
            else:
                await_written(cluster, topic, 2 * number + 1)
                writer.abort(deadline())
    assert cluster.admin.await_decided(topic)


def await_written(cluster: Cluster, topic: TopicName, end: int) -> None:
    """Wait until the broker has a record: an aborting writer discards its queue."""
    ends = cluster.admin.end_offsets
    for _ in range(1_000):
        if ends((topic,), Isolation.UNCOMMITTED)[topic][0] >= end:
            return
    pytest.fail("the record is not delivered")


def send(cluster: Cluster, topic: TopicName, count: int, partitions: int = 1) -> None:
    """Send numbers as values, round-robin over the partitions."""
    writer = cluster.kafka.producer(TIMEOUT_S)
    for number in range(count):
        writer.send(topic, None, str(number).encode(), partition=number % partitions)
    writer.flush(TIMEOUT_S)
    writer.close()


def read(
    cluster: Cluster,
    topic: TopicName,
    ranges: Ranges,
    timeout_s: float = TIMEOUT_S,
    isolation: Isolation = Isolation.COMMITTED,
) -> list[KafkaRecord]:
    """The records of some ranges of offsets."""
    starts: Ends = {topic: {p: Offset(start) for p, (start, _) in ranges.items()}}
    ends: Ends = {topic: {p: Offset(end) for p, (_, end) in ranges.items()}}
    opened = cluster.kafka.reader(timeout_s, isolation=isolation, fetch_wait_ms=FETCH_WAIT_RANGE_MS)
    with opened as reader:
        reader.assign(starts)
        return list(reader.read_to(ends))


def values(records: list[KafkaRecord] | tuple[KafkaRecord, ...]) -> list[bytes | None]:
    """The values of some records."""
    return [record.value for record in records]


def until_some(reader: RecordReader) -> tuple[KafkaRecord, ...]:
    """The first records within ten seconds."""
    for _ in range(100):
        found = reader.poll(0.1)
        if found:
            return found
    pytest.fail("no record within ten seconds")


# --- single records -------------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_sent(cluster: Cluster) -> None:
    """Key, value, timestamp and headers, including repeated and empty ones, are unchanged."""
    topic, writer = cluster.topic(), cluster.kafka.producer(TIMEOUT_S)
    headers = (("h", b"1"), ("h", b"2"), ("none", None))
    writer.send(topic, b"k", b"v", headers=headers, timestamp_ms=Millis(5), partition=1)
    writer.send(topic, None, None, timestamp_ms=Millis(6), partition=1)
    writer.flush(TIMEOUT_S)
    assert writer.undelivered == 0
    writer.close()
    assert read(cluster, topic, {1: (0, 2)}) == [
        KafkaRecord(topic, 1, Offset(0), Millis(5), b"k", b"v", headers),
        KafkaRecord(topic, 1, Offset(1), Millis(6), None, None, ()),
    ]


def test_a_topic_can_use_log_append_time(cluster: Cluster) -> None:
    """The broker's time replaces the writer's timestamp."""
    topic = cluster.topic(1, message_timestamp_type="LogAppendTime")
    writer = cluster.kafka.producer(TIMEOUT_S)
    writer.send(topic, None, b"v", timestamp_ms=Millis(5))
    writer.send(topic, None, b"v")
    writer.flush(TIMEOUT_S)
    writer.close()
    assert all(one.timestamp_ms > 1_000_000_000_000 for one in read(cluster, topic, {0: (0, 2)}))


def test_a_key_has_the_partition_of_java_clients(cluster: Cluster) -> None:
    """Other producers choose the same partition for a key (murmur2)."""
    topic, writer = cluster.topic(), cluster.kafka.producer(TIMEOUT_S)
    for number in range(6):
        writer.send(topic, f"k{number}".encode(), b"")
    writer.flush(TIMEOUT_S)
    writer.close()
    found = read(cluster, topic, {0: (0, 3), 1: (0, 3)})
    assert {p: [r.key for r in found if r.partition == p] for p in (0, 1)} == KEYS_BY_MURMUR2


def test_a_record_for_a_missing_topic_is_reported(cluster: Cluster) -> None:
    """The flush after a failed delivery raises an error with the topic's name."""
    writer = cluster.kafka.producer(TIMEOUT_S)
    writer.send(MISSING, None, b"x")
    with pytest.raises(NoSuchTopicError) as caught:
        writer.flush(TIMEOUT_S)
    assert MISSING in caught.value.place
    assert writer.undelivered == 0
    writer.close()


# --- reading --------------------------------------------------------------------------------------


def test_a_range_excludes_its_end(cluster: Cluster) -> None:
    """Records before the end are read, none at or after it, in several partitions."""
    topic = cluster.topic()
    send(cluster, topic, 10, partitions=2)
    found = read(cluster, topic, {0: (1, 3), 1: (4, 5)})
    assert {(r.partition, r.offset) for r in found} == {(0, 1), (0, 2), (1, 4)}
    assert read(cluster, topic, {0: (3, 3), 1: (4, 2)}, NEVER_S) == []


def test_partitions_without_an_end_are_not_read(cluster: Cluster) -> None:
    """The end of an unassigned partition is not awaited."""
    topic = cluster.topic()
    send(cluster, topic, 4, partitions=2)
    with cluster.kafka.reader(NEVER_S) as reader:
        reader.assign({topic: {0: BEGINNING}})
        assert list(reader.read_to({})) == []
        reader.assign({topic: {0: BEGINNING}})
        found = list(reader.read_to({topic: {0: Offset(2), 1: Offset(2)}}))
    assert values(found) == [b"0", b"2"]


def test_a_range_ends_in_a_gap(cluster: Cluster) -> None:
    """Control and aborted records at the end of a range do not block the read."""
    topic = cluster.topic()
    transactions(cluster, topic, True, False, True, False, False)
    assert values(read(cluster, topic, {0: (0, 10)}, NEVER_S)) == [b"0", b"2"]
    assert values(read(cluster, topic, {0: (1, 4)}, NEVER_S)) == []
    everything = read(cluster, topic, {0: (0, 10)}, NEVER_S, Isolation.UNCOMMITTED)
    assert [record.offset for record in everything] == [0, 2, 4, 6, 8]


def test_a_read_up_to_an_open_transaction_times_out(cluster: Cluster) -> None:
    """The error contains the position that was not reached."""
    topic = cluster.topic()
    transactions(cluster, topic, True)
    with started(cluster, topic) as writer:
        writer.begin()
        writer.send(topic, None, b"open", timestamp_ms=1, partition=0)
        await_written(cluster, topic, 3)
        with pytest.raises(NotNowError, match="partition 0 up to 3"):
            read(cluster, topic, {0: (0, 3)}, SHORT_S)
        assert values(read(cluster, topic, {0: (0, 3)}, isolation=Isolation.UNCOMMITTED)) == [
            b"0",
            b"open",
        ]
        writer.abort(deadline())


def test_unreadable_ranges_are_reported(cluster: Cluster) -> None:
    """The error names a missing topic, a missing partition, or an offset outside of the log."""
    topic, log = cluster.topic(), LogReader(cluster.kafka, SHORT_S)
    with pytest.raises(NoSuchTopicError, match=MISSING):
        read(cluster, MISSING, {0: (0, 1)}, SHORT_S)
    with pytest.raises(NoSuchTopicError, match="partition 9"):
        read(cluster, topic, {9: (0, 1)}, SHORT_S)
    with pytest.raises(NoSuchTopicError, match=MISSING):
        log.last(MISSING)
    with pytest.raises(NoSuchTopicError, match=MISSING):
        log.oldest_ms(MISSING, 1)
    with pytest.raises(OffsetGoneError):
        read(cluster, topic, {0: (50, 60)})


def test_deleted_records_are_not_read(cluster: Cluster) -> None:
    """An offset below the first one is an error; the beginning is the log's current start."""
    topic = cluster.topic()
    send(cluster, topic, 4)
    cluster.admin.delete_records(topic, {0: Offset(2)})
    with cluster.kafka.reader(TIMEOUT_S) as reader:
        reader.assign({topic: {0: BEGINNING}})
        assert values(until_some(reader)) == [b"2", b"3"]
        assert reader.positions == {topic: {0: 4}}
    with pytest.raises(OffsetGoneError):
        read(cluster, topic, {0: (1, 4)})


def test_a_reader_follows_a_topic(cluster: Cluster) -> None:
    """Records are returned soon after they are sent, and the positions follow."""
    topic, writer = cluster.topic(), cluster.kafka.producer(TIMEOUT_S)
    with cluster.kafka.reader(TIMEOUT_S) as reader:
        reader.assign({topic: {0: Offset(0), 1: Offset(0)}})
        for number in range(3):
            writer.send(topic, None, str(number).encode(), partition=0)
            assert values(until_some(reader)) == [str(number).encode()]
        assert reader.positions == {topic: {0: 3, 1: 0}}
        assert reader.poll(0.05) == ()
    writer.close()


def test_a_poll_returns_at_most_the_requested_number(cluster: Cluster) -> None:
    """The next poll returns the rest."""
    topic = cluster.topic()
    send(cluster, topic, 5)
    with cluster.kafka.reader(TIMEOUT_S) as reader:
        reader.assign({topic: {0: Offset(0)}})
        found: list[KafkaRecord] = []
        for _ in range(100):
            part = reader.poll(0.1, 2)
            assert len(part) <= 2
            found += part
        assert values(found) == [b"0", b"1", b"2", b"3", b"4"]
        reader.assign({topic: {0: Offset(3)}})
        assert values(until_some(reader)) == [b"3", b"4"]
    reader.close()


def test_positions_pass_over_gaps_at_the_end(cluster: Cluster, wait_for: WaitFor) -> None:
    """After all records the position is the end, after control and aborted records."""
    topic = cluster.topic()
    transactions(cluster, topic, True, False)
    with cluster.kafka.reader(TIMEOUT_S) as reader:
        reader.assign({topic: {0: Offset(0)}})
        assert values(until_some(reader)) == [b"0"]
        wait_for(lambda: reader.poll(0.1) == () and reader.positions[topic][0] == 4, "the end")


def test_the_last_records_are_found_before_gaps(cluster: Cluster) -> None:
    """The last committed records are found, however many offsets without a record follow."""
    topic, log = cluster.topic(), LogReader(cluster.kafka, TIMEOUT_S)
    assert log.newest(topic, 3) == ()
    assert log.last(topic) is None
    transactions(cluster, topic, True, True, *[False] * 60, True, False)
    last = log.last(topic)
    assert last is not None
    assert last.value == b"62"
    assert values(log.newest(topic, 2)) == [b"1", b"62"]
    assert values(log.newest(topic, 9)) == [b"0", b"1", b"62"]


def test_the_oldest_time_is_that_of_a_first_record(cluster: Cluster) -> None:
    """The minimum over all partitions; a topic without records has none."""
    topic, log = cluster.topic(), LogReader(cluster.kafka, TIMEOUT_S)
    assert log.oldest_ms(topic, 2) is None
    writer = cluster.kafka.producer(TIMEOUT_S)
    for time_ms, partition in ((9, 0), (1, 0), (7, 1)):
        writer.send(topic, None, b"", timestamp_ms=Millis(time_ms), partition=partition)
    writer.flush(TIMEOUT_S)
    writer.close()
    assert log.oldest_ms(topic, 2) == 7
    assert log.oldest_ms(topic, 1) == 9


# --- transactions ---------------------------------------------------------------------------------


def test_a_transaction_becomes_visible_atomically(cluster: Cluster) -> None:
    """Each written partition has one more offset, for the control record."""
    first, second = cluster.topic(), cluster.topic(1)
    with started(cluster, first) as writer:
        writer.begin()
        records = [(None, b"a", 1, 0), (b"k", b"b", 2, 1), (None, b"c", 3, 0)]
        assert writer.send_many(first, records, headers=(("h", b"1"),)) == 3
        writer.send(second, b"k", None, timestamp_ms=4)
        writer.commit(deadline())
        writer.begin()
        writer.commit(deadline())
    for topic in (first, second):
        assert cluster.admin.await_decided(topic)
    ends = cluster.admin.end_offsets((first, second))
    assert ends == {first: {0: 3, 1: 2}, second: {0: 2}}
    found = read(cluster, first, {0: (0, 3), 1: (0, 2)})
    written = sorted((r.partition, r.offset, r.timestamp_ms, r.key, r.value) for r in found)
    assert written == [(0, 0, 1, None, b"a"), (0, 1, 3, None, b"c"), (1, 0, 2, b"k", b"b")]
    assert {record.headers for record in found} == {(("h", b"1"),)}
    assert values(read(cluster, second, {0: (0, 2)})) == [None]


def test_a_writer_aborts_the_open_transaction_of_an_older_one(cluster: Cluster) -> None:
    """Any start with the same id does so, also if the older writer was closed."""
    topic = cluster.topic(1)
    with started(cluster, topic) as writer:
        writer.begin()
        writer.send(topic, None, b"left", timestamp_ms=1, partition=0)
        await_written(cluster, topic, 1)
    with started(cluster, topic) as writer:
        assert cluster.admin.await_decided(topic)
        writer.begin()
        writer.send(topic, None, b"new", timestamp_ms=1, partition=0)
        writer.commit(deadline())
    assert cluster.admin.await_decided(topic)
    assert cluster.admin.end_offsets((topic,)) == {topic: {0: 4}}
    assert values(read(cluster, topic, {0: (0, 4)})) == [b"new"]


def test_a_writer_that_is_fenced_while_it_sends_fails(cluster: Cluster, wait_for: WaitFor) -> None:
    """All of its later calls fail; a writer with another id continues."""
    topic = cluster.topic()
    with started(cluster, topic) as old, started(cluster, f"{topic}.other") as other:
        old.begin()
        old.send(topic, None, b"sent", timestamp_ms=1, partition=0)
        with started(cluster, topic):

            def fenced() -> bool:
                try:
                    old.send(topic, None, b"too late", timestamp_ms=1, partition=0)
                except FencedError:
                    return True
                return False

            wait_for(fenced, "the first writer hears of it", within_s=TIMEOUT_S)
        with pytest.raises(FencedError):
            old.send_many(topic, [(None, b"too late", 1, 0)])
        with pytest.raises(FencedError):
            old.commit(deadline())
        other.begin()
        other.send(topic, None, b"other", timestamp_ms=1, partition=0)
        other.commit(deadline())
    assert cluster.admin.await_decided(topic)
    assert values(LogReader(cluster.kafka, TIMEOUT_S).newest(topic, 5)) == [b"other"]


def test_a_transaction_into_a_missing_topic_is_refused(cluster: Cluster) -> None:
    """At the latest on commit; it can be aborted, and the next one succeeds."""
    topic = cluster.topic(1)
    with started(cluster, topic) as writer:
        writer.begin()

        def write() -> None:
            writer.send(MISSING, None, b"x", timestamp_ms=1, partition=0)
            writer.commit(deadline())

        with pytest.raises(NoSuchTopicError):
            write()
        writer.abort(deadline())
        writer.begin()
        writer.send(topic, None, b"y", timestamp_ms=1, partition=0)
        writer.commit(deadline())
    assert values(LogReader(cluster.kafka, TIMEOUT_S).newest(topic, 5)) == [b"y"]

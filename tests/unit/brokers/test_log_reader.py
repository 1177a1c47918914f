from collections.abc import Iterable

from brokers.kafka_interface import Isolation
from brokers.log_reader import LogReader, last_of, newest_records
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import Ends, KafkaRecord
from pipeline.clock import Deadline
from pipeline.ids import Millis, Offset, TopicName, TransactionalId
from pipeline.system_clock import SystemClock
from tests.unit.kafka import with_topics

TOPIC = TopicName("t")


def _record(partition: int, offset: int, time_ms: int) -> KafkaRecord:
    return KafkaRecord(TOPIC, partition, Offset(offset), Millis(time_ms), None, b"")


def _places(records: tuple[KafkaRecord, ...]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records]


class CountingReader(MemoryReader):
    """Counts its assignments."""

    begun = 0

    def assign(self, starts: Ends) -> None:
        """Count and assign."""
        self.begun += 1
        super().assign(starts)


def _log(times_ms: Iterable[int], *others_ms: int) -> MemoryKafka:
    """A topic whose first partition has records with these times, the second one the others."""
    kafka = with_topics([TOPIC], partitions=2)
    for partition, times in enumerate((times_ms, others_ms)):
        for time_ms in times:
            kafka.append(TOPIC, None, b"", timestamp_ms=time_ms, partition=partition)
    return kafka


def test_the_last_records_of_all_partitions_together() -> None:
    """Three in total, not three of each; the later timestamp is the later record."""
    log = _log(range(0, 50, 10), *[25] * 5)
    bounds = {0: (Offset(0), Offset(5)), 1: (Offset(0), Offset(5))}
    found = newest_records(log.reader(1.0), TOPIC, bounds, 3, lambda _: True)
    assert _places(found) == [(1, 4), (0, 3), (0, 4)]


def test_a_partition_keeps_its_order_for_any_timestamps() -> None:
    """A producer may set them; the record written last comes last."""
    part = [_record(0, 0, 50), _record(0, 1, 90), _record(0, 2, 10)]
    other = [_record(1, 0, 20)]
    assert _places(last_of([part, other], 2)) == [(0, 2), (1, 0)]
    assert _places(last_of([part, other], 9)) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert last_of([[], []], 2) == ()


def test_gaps_are_skipped_and_a_long_topic_is_not_read_completely() -> None:
    """Transaction markers are no records: the range that is read grows until there are enough."""
    log = _log(range(2_000))
    writer = log.transactions(TransactionalId("somebody's"))
    deadline = Deadline.after(SystemClock(), 10, "aborting")
    writer.start(deadline)
    writer.begin()
    writer.send_many(TOPIC, [(None, b"", 1, 0)] * 499)
    writer.abort(deadline)
    reader = CountingReader(log, 1.0, Isolation.COMMITTED)
    found = newest_records(reader, TOPIC, {0: (Offset(0), Offset(2_500))}, 2, lambda _: True)
    assert _places(found) == [(0, 1_998), (0, 1_999)]
    assert reader.begun == 2


def test_the_last_records_of_several_topics_are_read_with_one_reader() -> None:
    """Topics without a record, and those that do not exist, have none."""
    kafka = with_topics(("a", "b", "empty"))
    for topic, values in (("a", (b"1", b"2")), ("b", (b"3",))):
        for value in values:
            kafka.append(TopicName(topic), None, value)
    names = [TopicName(name) for name in ("a", "b", "empty", "missing")]
    found = LogReader(kafka, 1.0).last_records(names)
    assert [one and one.value for one in found] == [b"2", b"3", None, None]


def test_only_records_that_satisfy_the_condition_count() -> None:
    """It is evaluated until there are enough, back to the first record."""
    log = _log(range(1_000))
    bounds = {0: (Offset(0), Offset(1_000))}
    seldom = newest_records(log.reader(1.0), TOPIC, bounds, 2, lambda r: r.offset % 400 == 0)
    assert _places(seldom) == [(0, 400), (0, 800)]
    assert newest_records(log.reader(1.0), TOPIC, bounds, 2, lambda _: False) == ()


def test_the_bounds_are_respected() -> None:
    """Records before the start are not returned, and an empty partition is not read."""
    log = _log(range(10))
    bounds = {0: (Offset(8), Offset(10)), 1: (Offset(4), Offset(4))}
    assert _places(newest_records(log.reader(1.0), TOPIC, bounds, 5, lambda _: True)) == [
        (0, 8),
        (0, 9),
    ]

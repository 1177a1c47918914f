"""Mean sizes of records, from samples of topics in memory."""

from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.ids import Offset, TopicName
from pipeline.spark.run.record_samples import OFFSETS_BACK, RecordSamples
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import with_topics

IN, TRIMMED = TopicName("in"), TopicName("trimmed")


def samples(kafka: MemoryKafka) -> RecordSamples:
    """Samples of a cluster."""
    return RecordSamples(kafka, kafka, kafka.clock)


def test_the_records_before_a_position_are_sampled_with_key_value_and_headers() -> None:
    """Earlier ones are not read again."""
    kafka = with_topics([IN], clock=TwinClock())
    for _ in range(10):
        kafka.append(IN, None, b"x" * 1_000)
    for _ in range(OFFSETS_BACK):
        kafka.append(IN, b"ab", b"xyz", headers=(("h", b"12"), ("n", None)))
    assert samples(kafka).sizes({IN: {0: Offset(10 + OFFSETS_BACK)}}) == {IN: 2 + 3 + 4}


def test_a_topic_whose_records_are_removed_prevents_no_sample_of_others() -> None:
    """Internal topics are trimmed up to where their readers are."""
    kafka = with_topics([IN, TRIMMED], clock=TwinClock())
    kafka.append(IN, None, b"four")
    for _ in range(9):
        kafka.append(TRIMMED, None, b"gone")
    kafka.delete_records(TRIMMED, {0: Offset(9)})
    before = {IN: {0: Offset(1)}, TRIMMED: {0: Offset(9)}}
    assert samples(kafka).sizes(before) == {IN: 4.0}
    kafka.append(TRIMMED, None, b"later!")
    assert samples(kafka).sizes(before) == {IN: 4.0, TRIMMED: 6.0}


def test_nothing_is_read_where_nothing_was() -> None:
    """No lane has read, or only from the beginning of its topic."""
    kafka = with_topics([IN], clock=TwinClock())
    assert samples(kafka).sizes({}) == {}
    assert samples(kafka).sizes({IN: {0: Offset(0)}}) == {}

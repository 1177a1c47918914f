from confluent_kafka import OFFSET_INVALID

from brokers.kafka.offset_answers import bounds_in, offset_in


def test_a_missing_offset_is_no_result() -> None:
    """A broker that starts may return no error and no offset."""
    assert offset_in(OFFSET_INVALID) is None


def test_offsets_and_no_such_record_are_results() -> None:
    """Kafka returns -1 when no record is as late as a time."""
    assert [offset_in(offset) for offset in (0, 7, -1)] == [0, 7, -1]


def test_an_apparently_empty_partition_may_lack_an_end() -> None:
    """The driver repeats the offset that it got. One with records is unambiguous."""
    assert bounds_in(0, 7) == (0, 7)
    for low, high in ((0, 0), (7, 7), (OFFSET_INVALID, 7), (OFFSET_INVALID, OFFSET_INVALID)):
        assert bounds_in(low, high) is None

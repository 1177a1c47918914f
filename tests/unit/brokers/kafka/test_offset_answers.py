from confluent_kafka import OFFSET_INVALID

from brokers.kafka.offset_answers import bounds_in, offset_in


def test_no_offset_is_no_answer() -> None:
    """A broker that starts may give no error and no offset."""
    assert offset_in(OFFSET_INVALID) is None


def test_offsets_pass_and_so_does_no_such_record() -> None:
    """Kafka answers -1 when no record is as late as a time."""
    assert [offset_in(offset) for offset in (0, 7, -1)] == [0, 7, -1]


def test_a_partition_that_seems_empty_may_be_one_of_which_an_end_is_missing() -> None:
    """The driver repeats the offset that it was told. One with records is no doubt."""
    assert bounds_in(0, 7) == (0, 7)
    for low, high in ((0, 0), (7, 7), (OFFSET_INVALID, 7), (OFFSET_INVALID, OFFSET_INVALID)):
        assert bounds_in(low, high) is None

from confluent_kafka import OFFSET_INVALID

from brokers.kafka.answers import offset_in


def test_no_offset_is_no_answer() -> None:
    """A broker that starts may give no error and no offset."""
    assert offset_in(OFFSET_INVALID) is None


def test_offsets_pass_and_so_does_no_such_record() -> None:
    """Kafka answers -1 when no record is as late as a time."""
    assert [offset_in(offset) for offset in (0, 7, -1)] == [0, 7, -1]

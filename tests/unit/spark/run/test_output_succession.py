import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Epoch, Millis, Offset, TopicId, TopicName
from pipeline.markers.codec import encode_boundary
from pipeline.markers.signals import BoundaryRecord
from pipeline.spark.run.output_succession import boundary_of

BOUNDARY = BoundaryRecord(TopicId("out-1"), "us.net.counts", Epoch(1), Millis(7), {0: Offset(1)})


def record(value: bytes | None) -> KafkaRecord:
    """A record of a boundary topic."""
    return KafkaRecord(TopicName("out.boundaries"), 0, Offset(3), Millis(0), b"key", value)


@pytest.mark.parametrize("value", [None, b"not JSON", b"{}", b"[1]"])
def test_a_foreign_record_is_skipped(value: bytes | None) -> None:
    """The topic keeps it for ever, and the next writer has to start all the same."""
    assert boundary_of(record(value)) is None


def test_a_boundary_is_read() -> None:
    """As its writer has published it."""
    assert boundary_of(record(encode_boundary(BOUNDARY))) == BOUNDARY

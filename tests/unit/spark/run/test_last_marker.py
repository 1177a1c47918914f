import pytest

from brokers.kafka_interface import NotNowError
from pipeline.clock import Deadline
from pipeline.spark.run.last_marker import settled_marker
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import with_topics
from tests.unit.spark.support import fragment


def test_a_lane_waits_while_a_transaction_hides_its_last_marker() -> None:
    """It counts towards no limit: the cause is external, and ends."""
    names = fragment("tolls").names
    kafka = with_topics([names.markers], clock=TwinClock())
    writer = kafka.transactions(names.stable.transactional_id)
    writer.start(Deadline.after(kafka.clock, 10, "starting"))
    writer.begin()
    writer.send(names.markers, b"marker", b"", timestamp_ms=1)
    with pytest.raises(NotNowError, match="a transaction that has written there is open") as caught:
        settled_marker(kafka, kafka, names)
    assert caught.value.external
    assert caught.value.place == "topic local.net.tolls.markers"
    assert "find-hanging" in caught.value.hint
    writer.abort(Deadline.after(kafka.clock, 10, "aborting"))
    assert settled_marker(kafka, kafka, names) is None

import pytest

from brokers.kafka.errors import NotNowError
from brokers.kafka.servers import servers
from pipeline.ids import TopicName
from pipeline.spark.run.last_marker import settled_marker
from tests.unit.spark.support import fragment


class Undecided:
    """A cluster in which a transaction stays open."""

    def await_decided(self, topic: TopicName) -> bool:
        """It is open in the marker topic."""
        assert topic == "local.net.tolls.markers"
        return False


def test_a_lane_waits_as_long_as_a_transaction_hides_its_last_marker() -> None:
    """It counts towards no limit: what holds it back is outside of Medusa, and ends."""
    with pytest.raises(NotNowError, match="a transaction that has written there is open") as caught:
        settled_marker(servers("nowhere:1"), Undecided(), fragment("tolls").names)
    assert caught.value.external
    assert caught.value.place == "topic local.net.tolls.markers"
    assert "find-hanging" in caught.value.hint

"""Group offsets: one request in flight, then the newest positions, without blocking."""

from concurrent.futures import Future

from brokers.kafka.group_mirror import GroupMirror, GroupOffsets
from pipeline.ids import Offset, TopicName


class Broker:
    """Records requests, and completes them when the test does."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.open: list[Future[object]] = []

    def send(self, positions: GroupOffsets) -> "Future[object]":
        """Record the offset of partition 0."""
        self.asked.append(positions[TOPIC][0])
        self.open.append(Future())
        return self.open[-1]


TOPIC = TopicName("readings")


def at(offset: int) -> GroupOffsets:
    """A partition at an offset."""
    return {TOPIC: {0: Offset(offset)}}


def test_one_request_is_in_flight_and_the_newest_positions_are_next() -> None:
    """Intermediate positions are never sent."""
    broker = Broker()
    mirror = GroupMirror(broker.send)
    for offset in (1, 2, 3):
        mirror.follow(at(offset))
    assert broker.asked == [1]
    broker.open[0].set_result(None)
    assert broker.asked == [1, 3]
    broker.open[1].set_result(None)
    assert broker.asked == [1, 3]
    mirror.follow(at(4))
    assert broker.asked == [1, 3, 4]


def test_a_failed_request_is_not_retried() -> None:
    """The next positions are sent: a broker that refuses is not requested in a loop."""
    broker = Broker()
    mirror = GroupMirror(broker.send)
    mirror.follow(at(1))
    mirror.follow(at(2))
    broker.open[0].set_exception(RuntimeError("no coordinator"))
    assert broker.asked == [1]
    mirror.follow(at(3))
    assert broker.asked == [1, 3]


def test_a_fragment_without_positions_sends_no_request() -> None:
    """There is no offset to set."""
    broker = Broker()
    GroupMirror(broker.send).follow({})
    assert broker.asked == []

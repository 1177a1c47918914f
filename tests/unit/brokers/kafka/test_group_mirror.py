"""Group offsets: one request in flight, then the newest positions, without blocking."""

from collections.abc import Callable

from brokers.kafka.group_mirror import ANSWER_S, PAUSE_S, GroupMirror
from brokers.records import Ends
from pipeline.errors import MedusaError, UnavailableError
from pipeline.ids import Offset, TopicName
from tests.unit.deploy.twins import TwinClock

TOPIC = TopicName("readings")


class Group:
    """Records requests, and answers them when the test does; `refuses`: at once, with an error."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.refuses = False
        self.closed = False
        self._done: Callable[[MedusaError | None], None] = lambda _: None
        self._answers: list[MedusaError | None] = []

    def commit(self, offsets: Ends, done: Callable[[MedusaError | None], None]) -> None:
        """Record the offset of partition 0."""
        self.asked.append(offsets[TOPIC][0])
        self._done = done
        if self.refuses:
            done(UnavailableError("no coordinator"))

    def answer(self, error: MedusaError | None = None) -> None:
        """The answer to the request in flight, to be taken in by `poll`."""
        self._answers.append(error)

    def poll(self) -> None:
        """Take in an answer."""
        if self._answers:
            self._done(self._answers.pop())

    def close(self) -> None:
        """Note it."""
        self.closed = True


def at(offset: int) -> Ends:
    """A partition at an offset."""
    return {TOPIC: {0: Offset(offset)}}


def followed() -> tuple[Group, GroupMirror, TwinClock]:
    """A mirror of a group that was asked to follow 1, and then 2 and 3."""
    group, clock = Group(), TwinClock()
    mirror = GroupMirror(group, clock)
    for offset in (1, 2, 3):
        mirror.follow(at(offset))
    assert group.asked == [1]
    return group, mirror, clock


def test_one_request_is_in_flight_and_the_newest_positions_are_next() -> None:
    """Intermediate positions are never sent; nothing is sent twice."""
    group, mirror, _ = followed()
    group.answer()
    mirror.poll()
    assert group.asked == [1, 3]
    group.answer()
    mirror.poll()
    mirror.poll()
    assert group.asked == [1, 3]
    mirror.follow(at(4))
    assert group.asked == [1, 3, 4]


def test_a_failed_request_is_repeated_with_the_newest_positions() -> None:
    """After a pause: the last positions are set after an outage, too."""
    group, mirror, clock = followed()
    group.answer(UnavailableError("no coordinator"))
    mirror.poll()
    assert group.asked == [1]
    clock.sleep(PAUSE_S)
    mirror.poll()
    assert group.asked == [1, 3]
    group.answer(UnavailableError("no coordinator"))
    mirror.poll()
    mirror.follow(at(4))
    assert group.asked == [1, 3, 4]
    group.answer()
    clock.sleep(PAUSE_S)
    mirror.poll()
    assert group.asked == [1, 3, 4]


def test_a_request_that_cannot_be_sent_is_repeated_after_a_pause() -> None:
    """A group that refuses is not asked in a loop."""
    group, mirror, clock = followed()
    group.refuses = True
    group.answer()
    mirror.poll()
    assert group.asked == [1, 3]
    mirror.poll()
    assert group.asked == [1, 3]
    clock.sleep(PAUSE_S)
    mirror.poll()
    assert group.asked == [1, 3, 3]


def test_nothing_is_sent_after_the_end() -> None:
    """The next owner may have set newer offsets."""
    group, mirror, _ = followed()
    group.answer()
    mirror.close()
    mirror.follow(at(4))
    mirror.poll()
    assert group.asked == [1]
    assert group.closed


def test_a_request_without_an_answer_is_given_up() -> None:
    """Else nothing would be sent any more."""
    group, mirror, clock = followed()
    clock.sleep(ANSWER_S - 0.1)
    mirror.poll()
    assert group.asked == [1]
    clock.sleep(0.1)
    mirror.poll()
    assert group.asked == [1, 3]
    clock.sleep(ANSWER_S)
    mirror.poll()
    assert group.asked == [1, 3, 3]


def test_a_fragment_without_positions_sends_no_request() -> None:
    """There is no offset to set."""
    group = Group()
    mirror = GroupMirror(group, TwinClock())
    mirror.follow({})
    mirror.close()
    assert group.asked == []
    assert group.closed

"""A cluster of a test, for readers of end offsets: who answers, and what."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from brokers.kafka.leaders import Found, Group, LeaderAnswer
from pipeline.ids import Offset, TopicName
from tests.unit.deploy.twins import TwinClock

FIVE = Offset(5)
NO_ANSWER = LeaderAnswer({}, {}, answered=False)


@dataclass
class Request:
    """A pending request to a leader, or a pending description, which has no group."""

    clock: TwinClock
    group: Group | None = None
    answer: LeaderAnswer | None = None
    found: Found | None = None
    waited_s: float = 0.0

    def wait(self, timeout_s: float) -> bool:
        """Takes the whole time if there is no answer."""
        ended = self.answer is not None or self.found is not None
        if not ended:
            self.waited_s += timeout_s
            self.clock.sleep(timeout_s)
        return ended


@dataclass
class EndsRequest(Request):
    """A pending request to a leader."""

    def take(self) -> LeaderAnswer:
        """The answer."""
        assert self.answer is not None
        return self.answer


@dataclass
class TopicsRequest(Request):
    """A pending description."""

    problem: str = ""

    def take(self) -> tuple[Found, str]:
        """The answer."""
        assert self.found is not None
        return self.found, self.problem


@dataclass
class Brokers:
    """The cluster.

    Args:
        clock: advances when a reader waits.
        topics: what descriptions return; None: they are not answered.
        offset: the end of each partition.
        hanging: leaders that do not answer.
        answers: answers of leaders that are not just the ends.
    """

    clock: TwinClock
    topics: Found | None
    offset: Offset = FIVE
    hanging: set[int] = field(default_factory=set)
    answers: dict[int, LeaderAnswer] = field(default_factory=dict)
    asked: list[EndsRequest] = field(default_factory=list)
    described: list[TopicsRequest] = field(default_factory=list)
    connected: "list[Connection]" = field(default_factory=list)

    def connect(self) -> "Connection":
        """One more connection."""
        self.connected.append(Connection(self))
        return self.connected[-1]

    def answer(self, group: Group) -> LeaderAnswer:
        """The ends of a leader's partitions."""
        ends = dict.fromkeys(group.places, self.offset)
        return self.answers.get(group.leader, LeaderAnswer(ends, ends, answered=True))

    def answer_now(self, leader: int) -> None:
        """A leader answers all requests that it has not answered yet."""
        self.hanging.discard(leader)
        for request in self.asked:
            group = request.group
            if group is not None and group.leader == leader and request.answer is None:
                request.answer = self.answer(group)


@dataclass(eq=False)
class Connection:
    """A connection; `dead`: descriptions are not answered."""

    brokers: Brokers
    dead: bool = False
    closed: bool = False

    def describe(self, topics: Iterable[TopicName]) -> TopicsRequest:
        """Answered at once, unless no broker answers."""
        found = None if self.dead else self.brokers.topics
        request = TopicsRequest(self.brokers.clock)
        if found is not None:
            request.found = {name: found.get(name) for name in topics}
        self.brokers.described.append(request)
        return request

    def ask(self, group: Group) -> EndsRequest:
        """Answered at once, unless the leader hangs."""
        request = EndsRequest(self.brokers.clock, group)
        if group.leader not in self.brokers.hanging:
            request.answer = self.brokers.answer(group)
        self.brokers.asked.append(request)
        return request

    def close(self) -> None:
        """Close it."""
        self.closed = True

"""Reader of end offsets of an in-memory Kafka."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from brokers.kafka_interface import EndsAnswer, Isolation, Place
from brokers.memory_kafka.broker import MemoryBroker
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, TopicName


class _Pending(NamedTuple):
    """A request without an answer: the id of its topic, and the end when it was sent."""

    topic_id: str
    stable: Offset


class MemoryEnds:
    """An `EndsReader`; each partition has a leader of its own.

    Args:
        broker: the broker.
        answers: whether the leader of a partition answers now.
    """

    def __init__(self, broker: MemoryBroker, answers: Callable[[Place], bool]) -> None:
        self._broker = broker
        self._answers = answers
        self._pending: dict[Place, _Pending] = {}
        self.closed = False

    def read(self, topics: Iterable[TopicName], within_s: float) -> EndsAnswer:
        """The ends; sleeps once on the broker's clock when another leader does not answer."""
        if self.closed:
            raise BrokenInvariantError("the reader of end offsets is closed")
        asked_at_s = self._broker.clock.monotonic_s()
        stable: dict[TopicName, dict[int, Offset]] = {}
        written: dict[TopicName, dict[int, Offset]] = {}
        late: dict[TopicName, dict[int, Offset]] = {}
        missing: set[Place] = set()
        waits = False
        with self._broker.lock:
            for name in sorted(frozenset(topics) & self._broker.topics.keys()):
                topic = self._broker.topics[name]
                for number, log in enumerate(topic.partitions):
                    place, end = (name, number), log.end()
                    if not self._answers(place):
                        waits = waits or place not in self._pending
                        self._pending.setdefault(place, _Pending(topic.topic_id, end))
                        missing.add(place)
                        continue
                    earlier = self._pending.pop(place, None)
                    if earlier is not None and earlier.topic_id == topic.topic_id:
                        late.setdefault(name, {})[number] = earlier.stable
                    stable.setdefault(name, {})[number] = end
                    written.setdefault(name, {})[number] = log.end(Isolation.UNCOMMITTED)
        if waits:
            self._broker.clock.sleep(within_s)
        return EndsAnswer(asked_at_s, stable, written, late, frozenset(missing))

    def close(self) -> None:
        """Close it; later reads raise."""
        self.closed = True

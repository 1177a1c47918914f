from collections.abc import Iterable

from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import Ends
from pipeline.agent.events import EndsRead, Event
from pipeline.agent.polls.ends import EndsPoll
from pipeline.agent.watched import Watched
from pipeline.clock import Deadline
from pipeline.errors import UnavailableError
from pipeline.ids import TopicName, TransactionalId
from pipeline.system_clock import SystemClock
from tests.unit.kafka import create, fill

SIGHTINGS = TopicName("sightings-topic")


class Kafka(MemoryKafka):
    """A cluster that responds, or does not."""

    up = True

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """The ends, if the cluster is up."""
        if not self.up:
            raise UnavailableError("Kafka does not answer")
        return super().both_ends(topics)


def kafka_with_an_open_transaction() -> Kafka:
    """The topic ends at 7, and an open transaction has written two records behind that."""
    kafka = Kafka(SystemClock())
    create(kafka, SIGHTINGS)
    fill(kafka, SIGHTINGS, 0, 7)
    writer = kafka.transactions(TransactionalId("somebody's"))
    writer.start(Deadline.after(SystemClock(), 10, "starting"))
    writer.begin()
    writer.send_many(SIGHTINGS, [(None, b"", 0, 0)] * 2)
    return kafka


def test_an_unreachable_cluster_returns_no_ends() -> None:
    """Without a response nothing counts as at its end; nor when nothing is watched."""
    events: list[Event] = []
    kafka, watched = kafka_with_an_open_transaction(), Watched()
    poll = EndsPoll(kafka, watched, SystemClock(), events.append)
    poll.read()
    assert events == []
    watched.watch(frozenset({SIGHTINGS}), frozenset())
    poll.read()
    kafka.up = False
    poll.read()
    found = [(event.ends, event.written) for event in events if isinstance(event, EndsRead)]
    assert found == [({SIGHTINGS: {0: 7}}, {SIGHTINGS: {0: 9}}), ({}, {})]

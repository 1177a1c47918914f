from collections.abc import Iterable
from dataclasses import dataclass

from brokers.records import Ends
from pipeline.agent.events import EndsRead, Event
from pipeline.agent.polls.ends import EndsPoll
from pipeline.agent.watched import Watched
from pipeline.clock import SystemClock
from pipeline.errors import UnavailableError
from pipeline.ids import Offset, TopicName

SIGHTINGS = TopicName("sightings-topic")


@dataclass
class Kafka:
    """A cluster that answers, or does not."""

    up: bool = True

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """Every topic ends at 7, and an open transaction has written two records behind that."""
        if not self.up:
            raise UnavailableError("Kafka does not answer")
        there = tuple(topics)
        return {t: {0: Offset(7)} for t in there}, {t: {0: Offset(9)} for t in there}


def test_ends_of_an_unreachable_cluster_are_no_ends() -> None:
    """Nothing is told to be at its end when nobody could look; nor when nothing is watched."""
    told: list[Event] = []
    kafka, watched = Kafka(), Watched()
    poll = EndsPoll(kafka, watched, SystemClock(), told.append)
    poll.look()
    assert told == []
    watched.watch(frozenset({SIGHTINGS}), frozenset())
    poll.look()
    kafka.up = False
    poll.look()
    found = [(event.ends, event.written) for event in told if isinstance(event, EndsRead)]
    assert found == [({SIGHTINGS: {0: 7}}, {SIGHTINGS: {0: 9}}), ({}, {})]

from itertools import pairwise

import pytest

from brokers.kafka_interface import Place
from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.agent.events import EndsRead, Event
from pipeline.agent.polls.ends import AGENT_MS, PAUSE_LEAST_S, PAUSE_MOST_S, EndsPoll
from pipeline.agent.watched import Watched
from pipeline.boundaries.ends import Ends
from pipeline.clock import Deadline, steady_ms
from pipeline.ids import TopicName, TransactionalId
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create, fill

SIGHTINGS = TopicName("sightings-topic")


class Kafka(MemoryKafka):
    """A cluster that responds, or does not."""

    up = True

    def leader_answers(self, place: Place) -> bool:
        """Whether the cluster is up."""
        del place
        return self.up


def kafka_with_an_open_transaction() -> Kafka:
    """The topic ends at 7, and an open transaction has written two records behind that."""
    kafka = Kafka(TwinClock())
    create(kafka, SIGHTINGS)
    fill(kafka, SIGHTINGS, 0, 7)
    writer = kafka.transactions(TransactionalId("somebody's"))
    writer.start(Deadline.after(kafka.clock, 10, "starting"))
    writer.begin()
    writer.send_many(SIGHTINGS, [(None, b"", 0, 0)] * 2)
    return kafka


class News:
    """The ends that lanes got."""

    def __init__(self) -> None:
        self.ends: list[Ends] = []

    def ends_read(self, ends: Ends) -> None:
        """Note them."""
        self.ends.append(ends)


class World:
    """The poll of a node that watches one topic."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.watched, self.clock = kafka, Watched(), kafka.clock
        self.news = News()
        self.events: list[Event] = []
        self.poll = EndsPoll(kafka.ends_reader(), self.watched, self.news, self.events.append)

    def watch(self) -> None:
        """Watch the topic."""
        self.watched.watch(frozenset({SIGHTINGS}), frozenset())

    def read(self, times: int = 1) -> list[float]:
        """Poll, with the pauses that the poll asks for; these pauses."""
        pauses = []
        for _ in range(times):
            pauses.append(self.poll.read())
            self.clock.sleep(pauses[-1])
        return pauses


@pytest.fixture
def world() -> World:
    """A node that watches a topic of seven records."""
    kafka = Kafka(TwinClock())
    create(kafka, SIGHTINGS)
    fill(kafka, SIGHTINGS, 0, 7)
    found = World(kafka)
    found.watch()
    return found


def test_an_unreachable_cluster_returns_no_ends() -> None:
    """Without a response nothing counts as at its end; nor when nothing is watched."""
    world = World(kafka_with_an_open_transaction())
    world.read()
    assert (world.news.ends, world.events) == ([], [])
    world.watch()
    world.read()
    world.kafka.up = False
    world.read()
    found = [(ends.by_topic, ends.written) for ends in world.news.ends]
    assert found == [({SIGHTINGS: {0: 7}}, {SIGHTINGS: {0: 9}}), ({}, {})]


def test_an_open_transaction_is_dated_from_its_first_observation() -> None:
    """Each answer is compared with the one before."""
    world = World(kafka_with_an_open_transaction())
    world.watch()
    began_ms = steady_ms(world.clock)
    world.read(3)
    assert [ends.open for ends in world.news.ends] == [{(SIGHTINGS, 0): began_ms}] * 3


def test_lanes_get_each_answer_and_the_agent_one_in_a_quarter_of_a_second(world: World) -> None:
    """The same values: it shows what the lanes decide by."""
    began_ms = steady_ms(world.clock)
    while steady_ms(world.clock) - began_ms < 4 * AGENT_MS:
        fill(world.kafka, SIGHTINGS, 0, 1)
        world.read()
    assert len(world.news.ends) == 4 * AGENT_MS / (1_000 * PAUSE_LEAST_S)
    passed_on = [event.ends for event in world.events if isinstance(event, EndsRead)]
    gaps = [after.read_at_ms - before.read_at_ms for before, after in pairwise(passed_on)]
    assert len(passed_on) == 4
    assert all(AGENT_MS <= gap <= AGENT_MS + 1_000 * PAUSE_LEAST_S for gap in gaps)
    assert all(ends in world.news.ends for ends in passed_on)


def test_a_poll_is_eager_while_records_flow_and_rests_without_news(world: World) -> None:
    """After a fifth of a second the pause doubles up to its maximum; one record makes it short."""
    assert world.read(16)[-6:] == [0.02, 0.04, 0.08, 0.16, 0.2, 0.2]
    fill(world.kafka, SIGHTINGS, 0, 1)
    assert set(world.read(5)) == {PAUSE_LEAST_S}
    assert world.read(15)[-1] == PAUSE_MOST_S

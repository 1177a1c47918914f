import pytest

from brokers.kafka_interface import Place
from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.errors import BrokenInvariantError
from pipeline.ids import TopicName
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

TOPIC = TopicName("topic")


class Kafka(MemoryKafka):
    """A cluster in which the leaders of some partitions do not answer."""

    def __init__(self, clock: TwinClock) -> None:
        super().__init__(clock)
        self.silent: set[int] = set()

    def leader_answers(self, place: Place) -> bool:
        """Unless it is silent."""
        return place[1] not in self.silent


@pytest.fixture
def kafka() -> Kafka:
    """One record in each of two partitions; the leader of partition 1 is silent."""
    kafka = Kafka(TwinClock())
    create(kafka, TOPIC, partitions=2)
    for partition in (0, 1):
        kafka.append(TOPIC, None, b"", partition=partition)
    kafka.silent = {1}
    return kafka


def test_a_silent_leader_delays_one_read(kafka: Kafka) -> None:
    """Its partition is missing in all."""
    reader = kafka.ends_reader()
    for _ in range(3):
        answer = reader.read((TOPIC,), 0.5)
        assert (answer.stable, answer.missing) == ({TOPIC: {0: 1}}, frozenset({(TOPIC, 1)}))
    assert kafka.clock.monotonic_s() == 0.5


def test_its_answer_is_late(kafka: Kafka) -> None:
    """With the offset of the time of the request; only once."""
    reader = kafka.ends_reader()
    reader.read((TOPIC,), 0.5)
    kafka.append(TOPIC, None, b"", partition=1)
    kafka.silent = set()
    answer = reader.read((TOPIC,), 0.5)
    assert answer.late == {TOPIC: {1: 1}}
    assert answer.stable == answer.written == {TOPIC: {0: 1, 1: 2}}
    assert reader.read((TOPIC,), 0.5).late == {}


def test_a_late_answer_about_a_topic_that_was_made_again_is_dropped(kafka: Kafka) -> None:
    """Its offsets are those of another topic."""
    reader = kafka.ends_reader()
    reader.read((TOPIC,), 0.5)
    kafka.delete_topics((TOPIC,))
    create(kafka, TOPIC, partitions=2)
    kafka.silent = set()
    answer = reader.read((TOPIC,), 0.5)
    assert (answer.stable, answer.late) == ({TOPIC: {0: 0, 1: 0}}, {})


def test_a_closed_reader_cannot_be_read(kafka: Kafka) -> None:
    """A second close does nothing."""
    reader = kafka.ends_reader()
    reader.close()
    reader.close()
    with pytest.raises(BrokenInvariantError, match="closed"):
        reader.read((TOPIC,), 0.5)

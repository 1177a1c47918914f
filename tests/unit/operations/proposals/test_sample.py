import json
from collections.abc import Iterator
from typing import cast

from brokers.kafka_interface import Isolation
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import Ends, KafkaRecord
from pipeline.errors import RetryError
from pipeline.ids import TopicName
from pipeline.network import avro_types
from pipeline.operations.connections import Connections
from pipeline.operations.proposals import sample
from pipeline.operations.proposals.measurements import SampledRecord
from schemas.avro import parse
from schemas.codec import encode
from schemas.wire import join
from tests.unit.deploy.twins import TwinClock, World
from tests.unit.kafka import with_topics

TOPIC = TopicName("numbers")
SCHEMA = parse(
    json.dumps({"type": "record", "name": "N", "fields": [{"name": "n", "type": "int"}]})
)
COLUMNS = avro_types.read(SCHEMA.value).columns
PARTITIONS = 2


class SlowReader(MemoryReader):
    """Takes a second for each record, and fails after a number of them."""

    def __init__(self, kafka: MemoryKafka, fails_after: int) -> None:
        super().__init__(kafka, 1.0, Isolation.COMMITTED)
        self._clock, self._left = kafka.clock, fails_after

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """Read slowly."""
        for record in super().read_to(ends):
            if not self._left:
                raise RetryError("nothing new came")
            self._left -= 1
            self._clock.sleep(1.0)
            yield record


class TwinServers:
    """A topic of two partitions, and its registry."""

    def __init__(self, per_partition: int, fails_after: int = 1 << 30) -> None:
        self.registry = World.new().registry
        schema_id = self.registry.register(f"{TOPIC}-value", SCHEMA.text)
        self.clock = TwinClock()
        self.topics = with_topics([TOPIC], PARTITIONS, self.clock)
        for n in range(per_partition):
            value = join(schema_id, encode(SCHEMA, {"n": n}))
            for p in range(PARTITIONS):
                self.topics.append(TOPIC, b"k", value, timestamp_ms=n, partition=p)
        self._fails_after = fails_after

    def reader(self) -> SlowReader:
        """A slow reader."""
        return SlowReader(self.topics, self._fails_after)


def _sample(servers: TwinServers) -> tuple[SampledRecord, ...]:
    connections = cast("Connections", servers)
    return sample.sample(TOPIC, SCHEMA, COLUMNS, connections, servers.clock)


def test_the_sample_of_a_short_topic_is_all_of_it() -> None:
    """With keys, columns and timestamps."""
    seen = _sample(TwinServers(2))
    assert [(one.partition, one.timestamp_ms, one.key, one.values) for one in seen] == [
        (0, 0, "k", {"n": 0}),
        (0, 1, "k", {"n": 1}),
        (1, 0, "k", {"n": 0}),
        (1, 1, "k", {"n": 1}),
    ]


def test_the_sample_of_a_long_topic_is_limited_in_number_and_time() -> None:
    """The partitions share the maximum equally."""
    share = sample.RECORDS_MAX // PARTITIONS
    servers = TwinServers(share + 3)
    seen = _sample(servers)
    assert seen[0].values == {"n": 3}
    assert len(seen) == sample.WITHIN_S
    assert servers.clock.passed_s == sample.WITHIN_S


def test_the_sample_is_what_was_read_before_a_timeout() -> None:
    """An open transaction blocks the rest."""
    assert len(_sample(TwinServers(4, fails_after=3))) == 3


def test_an_empty_topic_has_no_sample() -> None:
    """It is no error."""
    assert _sample(TwinServers(0)) == ()

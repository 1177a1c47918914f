"""New partitions of an input while its lane runs."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.kafka.producer import PlainProducer
from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import Offset, TopicName
from tests.system.support import READING, TIMEOUT_S, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(400)]

DOCUMENT = """
network: growing
streams:
  readings:
    topic: growing-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 2s
    partitions: 1
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*)}
outputs: {counts: {topic: growing-out}}
"""
WITHIN_S = 90.0


def document(network: str) -> str:
    """A network that counts the readings of a topic with one partition."""
    return DOCUMENT.replace("growing", network)


class Growing:
    """The input topic of a network, before and after it has grown."""

    def __init__(self, medusa: Installation, network: str) -> None:
        self._medusa = medusa
        self._network = network
        self.topic = TopicName(f"{network}-in")
        self.start_ms = int(time.time()) * 1000
        medusa.deploy(document(network), {"reading.avsc": READING})
        medusa.await_state(network, "counts", LaneState.RUNNING)

    def send(self, producer: PlainProducer, sensor: str, after_ms: int, partition: int) -> None:
        """Send one reading and wait for its acknowledgement."""
        value = {"sensor": sensor, "value": 1, "at": self.start_ms + after_ms}
        encoded = self._medusa.encoded(f"{self.topic}-value", READING, value)
        producer.send(self.topic, None, encoded, partition=partition)
        producer.flush(10)

    def counted(self) -> Counter[str]:
        """Counts per sensor in the results."""
        found: Counter[str] = Counter()
        for row in self._medusa.decoded(f"{self._network}-out"):
            found[row["sensor"]] += row["n"]
        return found

    def reads(self, partition: int) -> bool:
        """Whether a committed batch contains a record of a partition."""
        ends = self._medusa.marker(self._network, "counts").end
        return any(
            at.topic == self.topic and at.partition == partition and offset > 0
            for at, offset in ends.items()
        )

    def grow(self) -> None:
        """Add a second partition."""
        admin = AdminClient({"bootstrap.servers": self._medusa.stack.kafka_bootstrap_servers})
        (grown,) = admin.create_partitions([NewPartitions(self.topic, 2)]).values()
        grown.result(20)
        self._medusa.wait_for(
            lambda: self._medusa.admin.describe((self.topic,))[self.topic].partitions == 2,
            "the topic has grown",
            within_s=WITHIN_S,
        )


@pytest.fixture
def newer(medusa: Installation) -> Iterator[PlainProducer]:
    """A producer created after the growth: an older one refreshes its metadata late."""
    producer = PlainProducer(medusa.stack.kafka_bootstrap_servers, TIMEOUT_S)
    yield producer
    producer.close()


def test_a_new_partition_is_read_from_its_first_record(
    medusa: Installation, newer: PlainProducer
) -> None:
    """Including records written before the lane detects it; no other record is repeated."""
    growing = Growing(medusa, "growing")
    growing.send(medusa.producer, "old", 0, 0)
    medusa.wait_for(lambda: growing.counted() == {"old": 1}, "the first window", within_s=WITHIN_S)
    growing.grow()
    for partition in (0, 1):
        growing.send(newer, f"new{partition}", 60_000, partition)
    medusa.wait_for(lambda: len(growing.counted()) >= 3, "both partitions", within_s=WITHIN_S)
    assert growing.counted() == {"old": 1, "new0": 1, "new1": 1}
    assert medusa.records("local.growing.counts.dlq") == []


def test_a_partition_added_between_back_to_back_batches_is_read(
    medusa: Installation, newer: PlainProducer
) -> None:
    """When the lane restarts to include it, the next batch is planned already, without it.

    All records belong to one window, so none of them can be late.
    """
    growing = Growing(medusa, "growing_busy")
    growing.send(medusa.producer, "old", 0, 0)
    medusa.wait_for(lambda: "old" in growing.counted(), "the first window", within_s=WITHIN_S)
    growing.grow()
    growing.send(newer, "new", 60_000, 1)
    ends_at, sent = time.monotonic() + WITHIN_S, 0
    while not growing.reads(1):
        assert time.monotonic() < ends_at, "no record of the new partition was read"
        for _ in range(10):
            growing.send(medusa.producer, "busy", 60_000 + sent % 900, 0)
            sent += 1
        growing.send(newer, "next", 60_000 + sent % 900, 1)
    expected = {"old": 1, "new": 1, "busy": sent, "next": sent // 10}
    medusa.wait_for(lambda: growing.counted() == expected, "all windows", within_s=WITHIN_S)
    assert medusa.records("local.growing_busy.counts.dlq") == []


def test_a_new_partition_is_read_from_its_first_retained_record(
    medusa: Installation, newer: PlainProducer
) -> None:
    """It was added and lost records during a pause: the checkpoint has no position for it."""
    growing = Growing(medusa, "growing_late")
    growing.send(medusa.producer, "old", 0, 0)
    medusa.wait_for(lambda: growing.counted() == {"old": 1}, "the first window", within_s=WITHIN_S)
    pause(network_id("growing_late"), None, medusa.catalog)
    medusa.await_state("growing_late", "counts", LaneState.STOPPED)
    growing.grow()
    for sensor in ("gone", "left"):
        growing.send(newer, sensor, 60_000, 1)
    medusa.admin.delete_records(growing.topic, {1: Offset(1)})
    resume(network_id("growing_late"), None, medusa.catalog)
    growing.send(newer, "new", 60_000, 0)
    medusa.wait_for(lambda: len(growing.counted()) >= 3, "both partitions", within_s=WITHIN_S)
    assert growing.counted() == {"old": 1, "left": 1, "new": 1}
    status = medusa.status("growing_late", "counts")
    assert status is not None
    assert status.restarts == 0

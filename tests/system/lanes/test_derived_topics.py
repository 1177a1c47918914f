"""The topic between two fragments and that of its boundaries: created again, and grown."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.records import NewTopicSpec
from pipeline.catalog.fragment_status import LaneState
from pipeline.clock import Deadline
from pipeline.deploy.remove import destroy, doomed
from pipeline.ids import TopicName
from pipeline.markers.codec import decode_boundary
from pipeline.markers.signals import BoundaryRecord
from pipeline.system_clock import SystemClock
from tests.system.support import READING, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(400)]

DOCUMENT = """
network: {name}
partitions: 1
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    silence: missing
    partitions: 1
boxes:
  sums: {{aggregate: readings, window: 1s, by: [sensor], compute: {{total: sum(value)}}}}
  peaks: {{aggregate: sums, window: 10s, by: [sensor], compute: {{most: max(total)}}}}
"""
BOXES = ("sums", "peaks")
WITHIN_S = 120.0
SECOND_MS, WINDOW_MS = 1_000, 10_000


class Chain:
    """Two fragments; the second reads the output topic of the first."""

    def __init__(self, medusa: Installation, name: str) -> None:
        self.medusa, self.name = medusa, name
        self.start_ms = int(time.time()) // 10 * WINDOW_MS - 2_000_000
        self.begin()

    def begin(self) -> None:
        """Deploy, and wait until both run."""
        self.sent: list[tuple[str, int, int]] = []
        self.medusa.deploy(DOCUMENT.format(name=self.name), {"reading.avsc": READING})
        for box in BOXES:
            self.medusa.await_state(self.name, box, LaneState.RUNNING)

    def send(self, seconds: Iterable[int], sensors: Iterable[str] = ("a", "b")) -> None:
        """A reading of each sensor at each of these seconds."""
        there = tuple(sensors)
        for second in seconds:
            for sensor in there:
                at = self.start_ms + second * SECOND_MS
                self.sent.append((sensor, second, at))
                reading = {"sensor": sensor, "value": second, "at": at}
                value = self.medusa.encoded(f"{self.name}-in-value", READING, reading)
                self.medusa.send(f"{self.name}-in", value, partition=0)
        self.medusa.producer.flush(20)

    def await_peaks(self, windows: int) -> None:
        """Wait for the results of so many windows of the second fragment, exactly as expected."""
        until_ms = self.start_ms + windows * WINDOW_MS
        maxima: dict[tuple[str, int], int] = {}
        for sensor, value, at in self.sent:
            counted_ms = at // SECOND_MS * SECOND_MS + SECOND_MS  # where the window of 1 s ends
            end = counted_ms // WINDOW_MS * WINDOW_MS + WINDOW_MS
            if end <= until_ms:
                maxima[sensor, end] = max(value, maxima.get((sensor, end), value))
        expected = Counter((sensor, end, most) for (sensor, end), most in maxima.items())
        self.medusa.wait_for(
            lambda: len(self.peaks(until_ms)) >= len(expected),
            f"{windows} windows",
            within_s=WITHIN_S,
        )
        assert Counter(self.peaks(until_ms)) == expected

    def peaks(self, until_ms: int) -> list[tuple[str, int, int]]:
        """The results of the second fragment for windows that end by then."""
        return [
            (row["sensor"], _ms(row["window_end"]), row["most"])
            for row in self.medusa.decoded(f"local.{self.name}.peaks")
            if _ms(row["window_end"]) <= until_ms
        ]

    def boundaries(self) -> list[BoundaryRecord]:
        """The boundaries that the first fragment has published."""
        found = self.medusa.records(f"local.{self.name}.sums.boundaries")
        return [
            decode_boundary(one.value, "")
            for one in found
            if one.value and one.key == f"local.{self.name}.sums".encode()
        ]


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def test_boundaries_of_a_destroyed_network_are_ignored_by_its_successor(
    medusa: Installation,
) -> None:
    """The same node has read boundaries of a topic of the same name, of much later event times."""
    chain = Chain(medusa, "fed_again")
    chain.send((1, 1_001, 1_012))
    chain.await_peaks(100)
    network = network_id("fed_again")
    deadline = Deadline.after(SystemClock(), WITHIN_S, "destroying")
    destroy(doomed(network, medusa.servers), medusa.servers, deadline, lambda _: None)
    medusa.admin.delete_topics((TopicName("fed_again-in"),))
    shutil.rmtree(medusa.checkpoints(network.name))  # of a lane whose markers are gone
    chain.begin()
    chain.send(range(15))  # more than the old topic contained: its last boundary would now apply
    chain.await_peaks(1)
    chain.send(range(15, 40))
    chain.await_peaks(3)
    (status,) = (s for s in medusa.catalog.statuses.of(network) if s.fragment == "peaks")
    assert (status.state, status.restarts) == (LaneState.RUNNING, 0)


def test_boundaries_are_published_again_into_a_recreated_topic(medusa: Installation) -> None:
    """Without another batch of the writer; the reader continues, and skips invalid records."""
    chain = Chain(medusa, "unbound")
    chain.send(range(15))
    chain.await_peaks(1)
    last, topic = chain.boundaries()[-1], TopicName("local.unbound.sums.boundaries")
    medusa.admin.delete_topics((topic,))
    medusa.admin.create_topics((NewTopicSpec(topic, 1, 1, (("cleanup.policy", "compact"),)),))
    medusa.wait_for(chain.boundaries, "the boundary is there again", within_s=30)
    assert chain.boundaries()[-1].boundary_ms == last.boundary_ms
    medusa.send(topic, b"not a boundary", key=b"somebody", partition=0)
    medusa.send(topic, json.dumps({"format": 1}).encode(), key=b"another", partition=0)
    chain.send(range(15, 35))
    chain.await_peaks(3)


def test_new_partitions_of_a_derived_topic_are_written_and_read(medusa: Installation) -> None:
    """The writer announces new partitions before it writes to them; no record is late or lost."""
    chain = Chain(medusa, "wider")
    chain.send(range(15))
    chain.await_peaks(1)
    before, topic = chain.boundaries()[-1], TopicName("local.wider.sums")
    assert set(before.positions) == {0}
    admin = AdminClient({"bootstrap.servers": medusa.stack.kafka_bootstrap_servers})
    (grown,) = admin.create_partitions([NewPartitions(topic, 3)]).values()
    grown.result(20)
    medusa.wait_for(
        lambda: set(chain.boundaries()[-1].positions) == {0, 1, 2},
        "a boundary that names all partitions",
        within_s=30,
    )
    assert chain.boundaries()[-1].boundary_ms == before.boundary_ms
    sensors = [f"sensor {number}" for number in range(20)]
    for second in range(15, 35):
        chain.send((second,), sensors)
    chain.await_peaks(3)
    records = [record for record in medusa.records(topic) if record.partition or record.offset > 40]
    assert {record.partition for record in records} == {0, 1, 2}
    elsewhere = TopicName("wider-elsewhere")
    medusa.admin.create_topics((NewTopicSpec(elsewhere, 3, 1),))
    for key in {record.key for record in records}:
        medusa.send(elsewhere, b"", key=key)
    medusa.producer.flush(20)
    placed = {record.key: record.partition for record in medusa.records(elsewhere)}
    assert all(placed[record.key] == record.partition for record in records if record.partition), (
        "a key lies where other clients of Kafka would put it"
    )
    status = medusa.status("wider", "sums")
    assert status is not None
    assert status.restarts == 0

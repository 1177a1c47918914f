"""Retention of dead letters against a Kafka in memory."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from brokers.kafka_interface import Isolation
from brokers.log_reader import LogReader
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import Ends
from pipeline.clock import Deadline
from pipeline.dead_letters.retention import Retention
from pipeline.ids import BatchId, Epoch, Incarnation, Offset, TopicName
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from tests.unit.dead_letters.support import NAMES, NOW
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create

KEPT_MS = 1_000
MARKER = CommitMarker(
    Epoch(1), Incarnation("a"), BatchId(1), {}, {}, {}, None, None, {},
    BatchId(1), None, Totals(), NOW, "digest",
)  # fmt: skip


class Kafka(MemoryKafka):
    """Dead letters appended a second apart, the first one at `NOW`, in one partition."""

    def __init__(
        self,
        marker: CommitMarker | None = MARKER,
        *,
        start: int = 0,
        marked_ms: int = NOW + 10_000,
        recreated: bool = False,
        undecided: bool = False,
    ) -> None:
        super().__init__(TwinClock())
        create(self, NAMES.dead_letters, NAMES.markers)
        self.calls: list[str] = []
        for number in range(10):
            self.append(NAMES.dead_letters, None, b"", timestamp_ms=NOW + 1_000 * number)
        self.delete_records(NAMES.dead_letters, {0: Offset(start)})
        if marker is not None:
            letters = "" if recreated else self.topics[NAMES.dead_letters].topic_id
            value = encode_marker(replace(marker, letters=letters))
            self.append(NAMES.markers, b"marker", value, timestamp_ms=marked_ms)
        if undecided:
            writer = self.transactions(NAMES.stable.transactional_id)
            writer.start(Deadline.after(self.clock, 1, "starting"))
            writer.begin()
            writer.send(NAMES.markers, b"marker", b"", timestamp_ms=marked_ms)

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """Record a call for dead letters."""
        names = tuple(topics)
        if names == (NAMES.dead_letters,):
            self.calls.append("ends")
        return super().end_offsets(names, isolation)

    def await_decided(self, topic: TopicName) -> bool:
        """Record the call."""
        assert topic == NAMES.markers
        self.calls.append("decided")
        return super().await_decided(topic)

    def reader(self, timeout_s: float, **more: Any) -> MemoryReader:
        """Record the call: only the marker is read."""
        self.calls.append("marker")
        return super().reader(timeout_s, **more)

    @property
    def start(self) -> int:
        """The oldest offset of the dead letters."""
        return self.topics[NAMES.dead_letters].partitions[0].start

    @property
    def retention(self) -> Retention:
        """Retention over this cluster."""
        return Retention(NAMES, self, LogReader(self, 1.0), lambda: KEPT_MS)


@pytest.mark.parametrize(
    ("needed", "start"), [({}, 9), ({0: 4}, 4), ({0: 9}, 9), ({0: 99}, 9), ({1: 3}, 9)]
)
def test_old_dead_letters_that_are_not_needed_are_removed(
    needed: dict[int, int], start: int
) -> None:
    """Age is measured at the last marker, by the brokers' clocks."""
    letters_from = {partition: Offset(offset) for partition, offset in needed.items()}
    kafka = Kafka(replace(MARKER, letters_from=letters_from))
    kafka.retention.apply()
    assert kafka.start == start


def test_the_marker_is_read_after_the_ends() -> None:
    """So it covers all dead letters below them, also those of a batch just committed."""
    kafka = Kafka()
    kafka.retention.apply()
    assert kafka.calls == ["ends", "decided", "marker"]


@pytest.mark.parametrize(
    "kafka",
    [
        Kafka(start=10),
        Kafka(undecided=True),
        Kafka(None),
        Kafka(replace(MARKER, letters_from={0: Offset(3)}), recreated=True),
        Kafka(marked_ms=NOW),
    ],
    ids=["none there", "open transaction", "never ran", "recreated", "all young"],
)
def test_nothing_is_removed(kafka: Kafka) -> None:
    """If the need is uncertain, or nothing is old."""
    before = kafka.start
    assert kafka.retention.apply() == {}
    assert kafka.start == before

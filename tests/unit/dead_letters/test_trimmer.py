"""Retention of dead letters against a Kafka in memory."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pytest

from brokers.records import Ends, KafkaRecord, TopicDescription
from pipeline.dead_letters.trimmer import EVERY_S, Retention, Trimmer
from pipeline.errors import RefusedError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, TopicName
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from tests.unit.dead_letters.support import NAMES, NOW
from tests.unit.deploy.twins import TwinClock

KEPT_MS = 1_000
MARKER = CommitMarker(
    Epoch(1), Incarnation("a"), BatchId(1), {}, {}, {}, None, None, {},
    BatchId(1), None, Totals(), NOW, "digest", letters="letters-id",
)  # fmt: skip


@dataclass
class Kafka:
    """Dead letters that came a second apart, the first one at `NOW`, in one partition."""

    start: int = 0
    end: int = 10
    topic_id: str = "letters-id"
    marker: CommitMarker | None = MARKER
    came_ms: int = NOW + 10_000
    decided: bool = True
    refuses: bool = False
    asked: list[str] = field(default_factory=list)

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """The dead letters."""
        return {topic: TopicDescription(topic, self.topic_id, 1) for topic in topics}

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """Where they begin."""
        return {topic: {0: Offset(self.start)} for topic in topics}

    def end_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """Where they end."""
        self.asked.append("ends")
        return {topic: {0: Offset(self.end)} for topic in topics}

    def await_decided(self, topic: TopicName) -> bool:
        """As it was said."""
        assert topic == NAMES.markers
        self.asked.append("decided")
        return self.decided

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> Mapping[int, Offset]:
        """One a second."""
        assert topic == NAMES.dead_letters
        return {0: Offset(max(0, min(self.end, -(-(time_ms - NOW) // 1000))))}

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Forget them, if that is allowed."""
        if self.refuses:
            raise RefusedError("not allowed", place=f"topic {topic}")
        self.start = before.get(0, self.start)

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last marker."""
        assert topic == NAMES.markers
        self.asked.append("marker")
        if self.marker is None:
            return None
        value = encode_marker(self.marker)
        return KafkaRecord(topic, 0, Offset(0), Millis(self.came_ms), b"marker", value)

    @property
    def retention(self) -> Retention:
        """Over this."""
        return Retention(NAMES, self, self.last, lambda: KEPT_MS)


@pytest.mark.parametrize(
    ("needed", "start"), [({}, 9), ({0: 4}, 4), ({0: 9}, 9), ({0: 99}, 9), ({1: 3}, 9)]
)
def test_what_is_old_and_not_needed_goes(needed: dict[int, int], start: int) -> None:
    """Old is what came a retention before the last marker, by the brokers' clocks."""
    letters_from = {partition: Offset(offset) for partition, offset in needed.items()}
    kafka = Kafka(marker=replace(MARKER, letters_from=letters_from))
    kafka.retention.apply()
    assert kafka.start == start


def test_the_marker_is_read_after_the_ends() -> None:
    """So it says what is needed of all letters below them, also of a batch just committed."""
    kafka = Kafka()
    kafka.retention.apply()
    assert kafka.asked == ["ends", "decided", "marker"]


@pytest.mark.parametrize(
    "kafka",
    [
        Kafka(start=10),
        Kafka(decided=False),
        Kafka(marker=None),
        Kafka(topic_id="again", marker=replace(MARKER, letters_from={0: Offset(3)})),
        Kafka(came_ms=NOW),
    ],
    ids=["none there", "open transaction", "never ran", "made again", "all young"],
)
def test_nothing_goes(kafka: Kafka) -> None:
    """Where it is not certain what is needed, or nothing is old."""
    before = kafka.start
    assert kafka.retention.apply() == {}
    assert kafka.start == before


def test_a_failure_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    """It does not hold up the lane; a right that is missing is not told every minute."""
    trimmer = Trimmer(Kafka(refuses=True).retention, TwinClock())
    with caplog.at_level(logging.WARNING):
        trimmer.trim()
        trimmer.trim()
    assert [r.message for r in caplog.records] == [
        "old dead letters are not removed: topic local.cars.moving.dlq: not allowed"
    ]


def test_it_is_done_once_a_minute() -> None:
    """However often somebody looks."""
    kafka, clock = Kafka(start=10), TwinClock()
    trimmer = Trimmer(kafka.retention, clock)
    for _ in range(3):
        trimmer.look()
        assert trimmer._thread is not None
        trimmer._thread.join(5)
    assert kafka.asked == ["ends"]
    clock.sleep(EVERY_S)
    trimmer.look()
    trimmer._thread.join(5)  # type: ignore[union-attr]
    assert kafka.asked == ["ends", "ends"]

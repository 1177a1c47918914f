"""Ends and event times of what a lane passes over that skips to the newest offsets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

from brokers.memory_kafka.cluster import MemoryKafka
from pipeline.ids import Incarnation, Millis, Offset, StreamName
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query.lower import lower
from pipeline.spark.run.newest_offsets import NewestOffsets
from pipeline.testing.lane import Stopped
from tests.unit.kafka import create
from tests.unit.lanes.start.test_decision import STATEFUL
from tests.unit.spark.support import fragment, lowering_context

TOLLS = fragment("tolls")
LOWERED = lower(TOLLS, lowering_context(TOLLS))
(SOURCE,) = LOWERED.sources
TOPIC = SOURCE.data.topic
ONE, TWO = (InputPartition(SOURCE.input, TOPIC, partition) for partition in (0, 1))
AHEAD_MS = SOURCE.event_time.ahead_ms or 0
NOW = Millis(5_000)


class Present(Stopped):
    """A clock that shows a time later than the records."""

    def now_ms(self) -> Millis:
        """That time."""
        return NOW


@dataclass
class Found:
    """The event times that an inspection finds."""

    largest: Mapping[InputPartition, Millis]
    unknown: frozenset[StreamName] = frozenset()
    asked: tuple[Positions, Positions] | None = None

    def newest(
        self, start: Positions, end: Positions
    ) -> tuple[Mapping[InputPartition, Millis], frozenset[StreamName]]:
        """Those."""
        self.asked = start, end
        return self.largest, self.unknown


def kafka(*times_ms: int) -> MemoryKafka:
    """A topic with records of these Kafka timestamps in its first partition."""
    found = MemoryKafka(Stopped())
    create(found, TOPIC, partitions=2)
    for at_ms in times_ms:
        found.append(TOPIC, None, b"", partition=0, timestamp_ms=at_ms)
    return found


def skipped(cluster: MemoryKafka, found: Found, progress: int | None = 50) -> CommitMarker:
    """The marker at the newest offsets, of a lane that has read two records."""
    ends = {ONE: Offset(2), TWO: Offset(0)}
    marker = first_marker(STATEFUL, Incarnation("one"), ends, Millis(0))
    known = {} if progress is None else {ONE: Millis(progress)}
    marker = replace(marker, progress=known, needed={ONE: Offset(0), TWO: Offset(0)})
    starts = cluster.start_offsets((TOPIC,))[TOPIC]
    earliest = {ONE: starts[0], TWO: starts[1]}
    inspector = cast("Inspector", found)
    newest = NewestOffsets(cluster, lambda: earliest, lambda: inspector, Present())
    return newest.skipped_to(marker, LOWERED, TOLLS.shape, Incarnation("two"))


def newest_ms(marker: CommitMarker) -> int:
    """The bound of the event times before the gap's end."""
    assert marker.gap is not None
    return marker.gap.newest_ms


def test_the_event_times_of_what_is_passed_over_are_read() -> None:
    """Up to the committed end; Kafka timestamps are not used."""
    found = Found({ONE: Millis(70)})
    marker = skipped(kafka(1, 2, 900, 4), found)
    assert found.asked == ({ONE: 2, TWO: 0}, {ONE: 4, TWO: 0})
    assert marker.end == {ONE: 4, TWO: 0}
    assert (newest_ms(marker), marker.progress) == (70, {ONE: 70})


def test_nothing_is_read_if_nothing_is_passed_over() -> None:
    """The records that the state was made of have reached up to the progress."""
    found = Found({})
    assert newest_ms(skipped(kafka(1, 2), found)) == 50
    assert found.asked is None


def test_records_of_unknown_schemas_are_bounded_by_their_kafka_timestamps() -> None:
    """They may be up to `ahead` beyond them; event time does not move by that."""
    marker = skipped(kafka(1, 2, 900, 4), Found({ONE: Millis(70)}, frozenset({SOURCE.input})))
    assert (newest_ms(marker), marker.progress) == (900 + AHEAD_MS, {ONE: 70})


def test_records_whose_event_times_are_not_known_are_bounded_too() -> None:
    """The definition of event time has changed since they were read."""
    assert newest_ms(skipped(kafka(800, 2), Found({}), progress=None)) == 800 + AHEAD_MS


def test_removed_records_were_written_before_now() -> None:
    """Nothing else is known of them."""
    cluster = kafka(1, 2, 3, 4)
    cluster.delete_records(TOPIC, {0: Offset(3)})
    found = Found({ONE: Millis(70)})
    assert newest_ms(skipped(cluster, found)) == NOW + AHEAD_MS
    assert found.asked == ({ONE: 3, TWO: 0}, {ONE: 4, TWO: 0})

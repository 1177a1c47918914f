"""Reads of a query: the records of offset ranges, decoded and validated."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from brokers.records import KafkaRecord
from pipeline.ids import Millis, StreamName
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.left_out import LeftOut
from pipeline.markers.positions import InputPartition, Positions
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query.lowered import Lowered, Source, TopicRole
from pipeline.spark.query.reasons import Why
from tests.histories.kafka import Kafka, log, topic_of
from tests.histories.rows import (
    Row,
    judged,
    through,
    too_late,
)

Ranges = dict[str, dict[str, dict[int, tuple[int, int]]]]
"""Offset ranges per source, topic and partition."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """Result of a lane's `_reader`: start positions of a query without a checkpoint."""

    begin: Positions
    fragment: Fragment
    kafka: Kafka
    rng: Callable[[], Random]


@dataclass(frozen=True, slots=True)
class Frame:
    """Result of `emit`: a query that is not started."""

    lowered: Lowered
    reader: Beginning
    left_out: frozenset[tuple[InputPartition, int, str]]


def emit(
    lowered: Lowered,
    reader: Beginning,
    left_out: tuple[LeftOut, ...] = (),
    **_: object,
) -> Frame:
    """Replaces the function of `pipeline/spark/query/emit.py`."""
    gone = frozenset((one.at, int(one.offset), one.port) for one in left_out)
    return Frame(lowered, reader, gone)


@dataclass
class Look:
    """The records of some ranges, validated per path."""

    frame: Frame
    ranges: Ranges
    late_ms: int = 0
    rows: dict[str, list[Row]] = field(default_factory=dict)
    late: list[tuple[str, str, Row]] = field(default_factory=list)
    bad: list[tuple[str, KafkaRecord, Reason]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    largest: dict[InputPartition, Millis] = field(default_factory=dict)
    records: int = 0
    skipped: int = 0

    def take(self) -> "Look":
        """Read and validate."""
        fragment = self.frame.reader.fragment
        inputs = {i.name: i for i in fragment.inputs}
        for source in self.frame.lowered.sources:
            good = self._source(source, inputs[source.input])
            for way in fragment.ways:
                if way.source == source.input:
                    self._way(source, way.port, way.name, way.boxes, good)
        return self

    def _source(self, source: Source, stream: Any) -> list[Row]:
        good: list[Row] = []
        for assigned in source.topics:
            there = topic_of(self.frame.reader.kafka, assigned.topic)
            for partition, (start, end) in self.ranges[source.input][assigned.topic].items():
                records = log(there, partition).read(start, end)
                if assigned.role is not TopicRole.DATA:
                    continue
                at = InputPartition(source.input, assigned.topic, partition)
                good += self._judge(at, records, stream, source)
        return good

    def _judge(
        self, at: InputPartition, records: list[KafkaRecord], stream: Any, source: Source
    ) -> list[Row]:
        good: list[Row] = []
        for record in records:
            if (at, int(record.offset), "") in self.frame.left_out:
                continue
            self.records += 1
            found = judged(record, stream, source)
            if isinstance(found, Row):
                if self._is_skipped(found, source):
                    self.skipped += 1
                else:
                    good.append(found)
                self.largest[at] = max(self.largest.get(at, Millis(0)), Millis(found.at))
            elif isinstance(found, Reason):
                self.bad.append((source.input, record, found))
            else:
                self.bad.append((source.input, record, Reason.SCHEMA_NOT_FOUND))
                self.unknown.append(found)
        return good

    def _is_skipped(self, row: Row, source: Source) -> bool:
        """Whether its time was final before its source was first read."""
        limit = source.skipped_ms
        return limit is not None and too_late(self.frame.reader.fragment, row.at, limit)

    def _way(self, source: Source, port: str, name: str, boxes: Any, good: list[Row]) -> None:
        rows: Any = [
            row
            for row in good
            if (
                InputPartition(source.input, row.record.topic, row.record.partition),
                int(row.record.offset),
                name,
            )
            not in self.frame.left_out
        ]
        for box in boxes:
            rows = through(box, rows)
        for row in rows:
            if self.late_ms and too_late(self.frame.reader.fragment, row.at, self.late_ms):
                self.late.append((source.input, name, row))
            else:
                self.rows.setdefault(port, []).append(row)


class Inspector:
    """Replaces the class of `pipeline/spark/batch/inspection.py`."""

    def __init__(self, lowered: Lowered, read: Beginning) -> None:
        self.lowered, self._read = lowered, read

    def rejected(
        self,
        start: Positions,
        end: Positions,
        late_ms: Millis | None,
        left_out: tuple[LeftOut, ...] = (),
        most: int | None = None,
    ) -> list[Rejected]:
        """All rejected records of a range."""
        del most
        frame = emit(self.lowered, self._read, left_out)
        look = Look(frame, _ranges(start, end), int(late_ms or 0)).take()
        found = [
            _rejected(source, "", record, Why(why, "told")) for source, record, why in look.bad
        ]
        found += [
            _rejected(
                source, port, row.record, Why(Reason.LATE, "told", event_time_ms=Millis(row.at))
            )
            for source, port, row in look.late
        ]
        return sorted(found, key=lambda r: (r.topic, r.partition, r.offset, r.port))

    def oldest_ms(
        self, start: Positions, end: Positions, left_out: tuple[LeftOut, ...] = ()
    ) -> Millis | None:
        """The least event time of the records that count; 0 if a schema is not known."""
        look = Look(emit(self.lowered, self._read, left_out), _ranges(start, end)).take()
        times = [Millis(row.at) for rows in look.rows.values() for row in rows]
        return min([*times, *[Millis(0) for _ in look.unknown]], default=None)

    def newest(
        self, start: Positions, end: Positions
    ) -> tuple[dict[InputPartition, Millis], frozenset[StreamName]]:
        """The largest event times of the records, and the inputs with schemas that are not known.

        Which input that is does not matter here: all of them.
        """
        look = Look(emit(self.lowered, self._read), _ranges(start, end)).take()
        streams = (source.input for source in self.lowered.sources)
        return look.largest, frozenset(streams) if look.unknown else frozenset()

    def unknown_schemas(
        self, start: Positions, end: Positions, left_out: tuple[LeftOut, ...] = ()
    ) -> tuple[int, ...]:
        """Ids of schemas that the query was not planned with."""
        frame = emit(self.lowered, self._read, left_out)
        return tuple(sorted(set(Look(frame, _ranges(start, end)).take().unknown)))


def _ranges(start: Positions, end: Positions) -> Ranges:
    found: Ranges = {}
    for at, until in end.items():
        topics = found.setdefault(at.input, {})
        topics.setdefault(at.topic, {})[at.partition] = (int(start[at]), int(until))
    return found


def _rejected(source: str, port: str, record: KafkaRecord, why: Why) -> Rejected:
    return Rejected(
        input=source,  # type: ignore[arg-type]
        port=port,
        why=why,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=record.headers,
    )

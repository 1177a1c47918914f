"""Inspection: finds the refused and the late records of a batch by reading its ranges again.

The query itself only counts invalid records, so batches without any have no extra cost. When a
count is not zero, the same validation reruns over exactly the same ranges, keeping the originals.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Millis, Offset, SchemaHandle, StreamName, TopicName
from pipeline.lanes.dead_letter_reasons import LATENESS, Reason
from pipeline.lanes.left_out import LeftOut
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query import hidden
from pipeline.spark.query.emit import emit_path, unknown_schemas
from pipeline.spark.query.emitting.record_filter import sent_to
from pipeline.spark.query.emitting.skipped import is_skipped
from pipeline.spark.query.lateness import how_late
from pipeline.spark.query.lowered import AsOfCore, Lowered, Path
from pipeline.spark.query.places import is_answered
from pipeline.spark.query.readers import Ranges, Reader
from pipeline.spark.query.reasons import Judged, why
from schemas import wire

_OF_ONE_PATH = (Reason.EVALUATION_FAILED, Reason.LATE, Reason.PARTLY_LATE)
"""Reasons for which one path may refuse a record that another accepts."""
_ALONE = "__alone"
"""Whether only this path had the record: then the dead letter is this path's for any reason."""


@dataclass(frozen=True, slots=True)
class Inspector:
    """Inspects ranges of one fragment's inputs; `read` returns a reader of the ranges."""

    lowered: Lowered
    read: Callable[[Ranges], Reader]

    def rejected(
        self,
        start: Positions,
        end: Positions,
        late_ms: Millis | None,
        left_out: tuple[LeftOut, ...] = (),
        most: int | None = None,
    ) -> list[Rejected]:
        """All refused and late records of a batch, in the order of their positions.

        Args:
            start: positions before the batch.
            end: positions after it.
            late_ms: also those that were late, at or below this event time (for windows: of which
                one ended at or before it).
            left_out: records to exclude.
            most: maximum number on each path, the first ones; None: all.
        """
        reader = self._reader(start, end)
        found: list[Rejected] = []
        for path in self.lowered.paths:
            rows = emit_path(self.lowered, path, reader, left_out)
            reason = F.col(hidden.REASON)
            own = reason.startswith(Reason.EVALUATION_FAILED.value)
            alone = self._alone(path)
            wrong = reason.isNotNull() if path.first else own | (alone & reason.isNotNull())
            if late_ms is not None:
                late = F.when(reason.isNull(), how_late(self.lowered.shape, late_ms))
                if isinstance(self.lowered.core, AsOfCore) and path.port == "left":
                    source = self.lowered.source(path.source)
                    late = F.when(~is_answered(source, self.lowered.core), late)
                skipped = is_skipped(self.lowered.source(path.source), self.lowered.shape)
                if skipped is not None:
                    late = F.when(~skipped, late)
                rows = rows.withColumn(hidden.REASON, F.coalesce(reason, late))
                wrong = wrong | F.col(hidden.REASON).isin(list(LATENESS))
            rows = rows.where(wrong)
            if path.as_rows:  # all rows of a record have its event time, so all are late or none
                rows = rows.dropDuplicates([hidden.TOPIC, hidden.PARTITION, hidden.OFFSET])
            if most is not None:
                rows = rows.orderBy(*hidden.PLACE).limit(most)
            found.extend(self._collected(rows, path, late_ms))
        found.sort(key=lambda r: (r.topic, r.partition, r.offset, r.port))
        return found

    def unknown_schemas(
        self, start: Positions, end: Positions, left_out: tuple[LeftOut, ...] = ()
    ) -> tuple[SchemaHandle, ...]:
        """All schemas in a batch that the query was not planned with, most frequent first.

        `left_out`: records to exclude.
        """
        reader = self._reader(start, end)
        return most_frequent(
            (row["handle"], row["count"])
            for source in self.lowered.sources
            for row in unknown_schemas(source, reader, left_out).collect()
        )

    def oldest_ms(
        self, start: Positions, end: Positions, left_out: tuple[LeftOut, ...] = ()
    ) -> Millis | None:
        """A lower bound of the event times of the records that count; None: none counts.

        A record that a step drops later counts; one of a schema that the plan lacks may have any
        event time. A row that was redriven with the version of its table is never late.

        Args:
            start: positions before a batch.
            end: positions after it.
            left_out: records to exclude.
        """
        reader = self._reader(start, end)
        found: list[Millis] = []
        for path in self.lowered.paths:
            source, core = self.lowered.source(path.source), self.lowered.core
            rows = emit_path(self.lowered, replace(path, steps=()), reader, left_out)
            reason = F.col(hidden.REASON)
            at_ms = F.when(reason.isNull(), F.col(hidden.EVENT_MS))
            at_ms = at_ms.when(reason == hidden.UNKNOWN_SCHEMA, F.lit(0))
            skipped = is_skipped(source, self.lowered.shape)
            if skipped is not None:
                at_ms = F.when(~skipped, at_ms)
            if isinstance(core, AsOfCore) and path.port == "left":
                at_ms = F.when(~is_answered(source, core), at_ms)
            found += [row[0] for row in rows.agg(F.min(at_ms)).collect() if row[0] is not None]
        return min(found, default=None)

    def newest(
        self, start: Positions, end: Positions
    ) -> tuple[Mapping[InputPartition, Millis], frozenset[StreamName]]:
        """The largest event times of the records that count, per partition that has any.

        A record that a step drops later counts, too. The inputs that are returned as well have
        records of schemas that the plan lacks: these may count once their schemas are looked up.

        Args:
            start: positions before the records.
            end: positions after them.
        """
        reader = self._reader(start, end)
        found: dict[InputPartition, Millis] = {}
        unknown: set[StreamName] = set()
        for path in (path for path in self.lowered.paths if path.first):
            rows = emit_path(self.lowered, replace(path, steps=()), reader)
            reason = F.col(hidden.REASON)
            largest = F.max(F.when(reason.isNull(), F.col(hidden.EVENT_MS)))
            lacking = F.count(F.when(reason == hidden.UNKNOWN_SCHEMA, 1))
            for row in rows.groupBy(*hidden.PLACE[:2]).agg(largest, lacking).collect():
                topic, partition, largest_ms, number = row
                if largest_ms is not None:
                    at = InputPartition(path.source, TopicName(topic), partition)
                    found[at] = Millis(largest_ms)
                if number:
                    unknown.add(path.source)
        return found, frozenset(unknown)

    def _reader(self, start: Positions, end: Positions) -> Reader:
        ranges: dict[StreamName, dict[TopicName, dict[int, tuple[int, int]]]] = {}
        for at, until in end.items():
            topics = ranges.setdefault(at.input, {})
            topics.setdefault(at.topic, {})[at.partition] = (start[at], until)
        return self.read(ranges)

    def _alone(self, path: Path) -> Column:
        """Whether a redriven record is on no other path of the source."""
        source = self.lowered.source(path.source)
        return sent_to(source, path) if self.lowered.others(path) else F.lit(False)

    def _collected(self, rows: DataFrame, path: Path, late_ms: Millis | None) -> Iterator[Rejected]:
        for time in (hidden.KAFKA_TIME, hidden.EVENT_TIME):
            rows = rows.withColumn(time, F.unix_millis(time))
        source = self.lowered.source(path.source)
        alone = self._alone(path).alias(_ALONE)
        rows = rows.select(*hidden.ORIGINAL, hidden.EVENT_TIME, hidden.REASON, alone)
        for row in rows.collect():
            judged = Judged(
                word=row[hidden.REASON],
                value=_bytes(row[hidden.VALUE]),
                headers=tuple((h["key"], _bytes(h["value"])) for h in row[hidden.HEADERS] or ()),
                timestamp_ms=Millis(row[hidden.KAFKA_TIME]),
                event_time_ms=row[hidden.EVENT_TIME],
                late_ms=late_ms,
            )
            found = why(judged, source)
            yield Rejected(
                input=path.source,
                port=path.name if found.reason in _OF_ONE_PATH or row[_ALONE] else "",
                why=found,
                topic=TopicName(row[hidden.TOPIC]),
                partition=row[hidden.PARTITION],
                offset=Offset(row[hidden.OFFSET]),
                timestamp_ms=judged.timestamp_ms,
                key=_bytes(row[hidden.KEY]),
                value=judged.value,
                headers=judged.headers,
            )


def most_frequent(counts: Iterable[tuple[str, int]]) -> tuple[SchemaHandle, ...]:
    """Schemas by frequency, most frequent first, of equals the least.

    `counts` contains prefixes in hexadecimal digits.
    """
    totals = Counter[bytes]()
    for prefix, count in counts:
        totals[bytes.fromhex(prefix)] += count
    ranked = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    named = (wire.handle(prefix) for prefix, _ in ranked)
    return tuple(one for one in named if one is not None)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)

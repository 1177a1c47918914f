"""What the rows of a batch tell of the records that were read: counts, and how far time is.

A query whose every record comes out as a row (`Lowered.counted`) is counted from its rows, all at
once in Arrow. Spark could observe it, as it does queries that keep state; but that costs each row
more, grows with the number of partitions, and parts the code that Spark makes in two. No Spark in
here.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ids import Millis, SchemaHandle
from pipeline.lanes.positions import InputPartition
from pipeline.spark import hidden
from pipeline.spark.hidden import NO_RESULT, Reason
from pipeline.spark.lowered import AssignedTopic, Lowered, Source, TopicRole
from schemas import wire

COLUMNS = (hidden.ORIGIN, hidden.PARTITION, hidden.ADVANCE, hidden.UNKNOWN)
"""What is counted of a row, beside `reason` and `timestamp_ms`."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of the records of a batch; the fields are those of `BatchFacts`."""

    records: int
    bad: int
    advance_ms: Millis | None
    unknown: tuple[SchemaHandle, ...]
    largest: Mapping[InputPartition, Millis]
    failed: Mapping[str, int] = field(default_factory=dict)


def counted(rows: pa.Table, lowered: Lowered) -> Told:
    """Count the rows of a batch: columns `reason`, `timestamp_ms`, and `COLUMNS`."""
    rows = rows.select(["reason", "timestamp_ms", *COLUMNS])
    reason = rows.column("reason")
    fine = pc.fill_null(pc.equal(reason, NO_RESULT), fill_value=True)
    failed = pc.fill_null(pc.starts_with(reason, Reason.EVALUATION_FAILED.value), fill_value=False)
    of_record = pc.is_valid(rows.column(hidden.ORIGIN))
    # What a box refuses each path counts; what cannot be judged counts once, as a record does.
    bad = pc.if_else(of_record, pc.invert(fine), failed)
    advances = [
        at for at, (_, topic) in enumerate(lowered.origins) if topic.role is TopicRole.ADVANCES
    ]
    is_advance = pc.is_in(rows.column(hidden.ORIGIN), pa.array(advances, pa.int32()))
    judged = rows.filter(pc.and_(of_record, pc.or_(fine, failed)))
    return Told(
        records=_number(of_record) - _number(is_advance),
        bad=_number(bad),
        advance_ms=_millis(pc.max(rows.column(hidden.ADVANCE)).as_py()),
        unknown=schemas_of(_unknown(rows, lowered)),
        largest=_largest(judged, lowered),
    )


def most_advanced(
    source: Source, topic: AssignedTopic, partition: int, largest_ms: int
) -> Iterator[tuple[InputPartition, Millis]]:
    """Whose event time a good record moves; one that was sent again may be of any partition."""
    again = topic.role is TopicRole.REDRIVE
    for one in range(topic.partitions) if again else (partition,):
        yield InputPartition(source.input, topic.topic, one), Millis(largest_ms)


def schemas_of(prefixes: Iterable[bytes]) -> tuple[SchemaHandle, ...]:
    """The schemas that some prefixes name, each once, in the order of the prefixes."""
    named = (wire.handle(prefix) for prefix in sorted(set(prefixes)))
    return tuple(handle for handle in named if handle is not None)


def _number(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _millis(value: int | None) -> Millis | None:
    return None if value is None else Millis(value)


def _unknown(rows: pa.Table, lowered: Lowered) -> Iterator[bytes]:
    """The largest of each input."""
    rows = rows.filter(pc.is_valid(rows.column(hidden.UNKNOWN)))
    if not rows.num_rows:
        return
    for source in lowered.sources:
        own = [at for at, (other, _) in enumerate(lowered.origins) if other == source]
        mine = rows.filter(pc.is_in(rows.column(hidden.ORIGIN), pa.array(own, pa.int32())))
        if mine.num_rows:
            yield pc.max(mine.column(hidden.UNKNOWN)).as_py()


def _largest(rows: pa.Table, lowered: Lowered) -> dict[InputPartition, Millis]:
    """The largest event time of each partition that had good records."""
    found = rows.group_by([hidden.ORIGIN, hidden.PARTITION]).aggregate([("timestamp_ms", "max")])
    largest: dict[InputPartition, Millis] = {}
    for row in found.to_pylist():
        source, topic = lowered.origins[row[hidden.ORIGIN]]
        partition, time_ms = row[hidden.PARTITION], row["timestamp_ms_max"]
        if time_ms is None:  # an advance has none
            continue
        for at, time in most_advanced(source, topic, partition, time_ms):
            largest[at] = max(time, largest.get(at, time))
    return largest

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

from pipeline.ids import Incarnation, Millis, SchemaHandle
from pipeline.markers import codec
from pipeline.markers.positions import InputPartition
from pipeline.spark.query import hidden
from pipeline.spark.query.hidden import SKIPPED, UNFIT, Reason
from pipeline.spark.query.lowered import AssignedTopic, Lowered, Source, TopicRole
from schemas import wire

COLUMNS = (hidden.ORIGIN, hidden.PARTITION)
"""What is counted of a row, beside those of results."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of the records of a batch; the fields are those of `BatchFacts`."""

    records: int
    bad: int
    advance_ms: Millis | None
    unknown: tuple[SchemaHandle, ...]
    largest: Mapping[InputPartition, Millis]
    failed: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0


def counted(rows: pa.Table, lowered: Lowered, incarnation: Incarnation) -> Told:
    """Count the rows of a batch.

    Args:
        rows: columns `reason`, `timestamp_ms`, `value`, and `COLUMNS`.
        lowered: the fragment.
        incarnation: whose advances count.
    """
    rows = rows.select(["reason", "timestamp_ms", "value", *COLUMNS])
    reason, origin = rows.column("reason"), rows.column(hidden.ORIGIN)
    unfit = pc.fill_null(pc.equal(reason, UNFIT), fill_value=False)
    failed = pc.fill_null(pc.starts_with(reason, Reason.EVALUATION_FAILED.value), fill_value=False)
    advances = [lowered.places(source)[TopicRole.ADVANCES] for source in lowered.sources]
    is_advance = _is_any(origin, advances)
    is_record = pc.and_not(pc.is_valid(origin), is_advance)
    # What a box refuses each path counts; what is unfit counts once, as a record does.
    bad = pc.or_(failed, pc.and_(is_record, unfit))
    return Told(
        records=_number(is_record),
        bad=_number(bad),
        advance_ms=_advance(rows.filter(is_advance), incarnation),
        unknown=schemas_of(_unknown(rows.filter(pc.and_(is_record, unfit)), lowered)),
        largest=_largest(rows.filter(pc.and_not(is_record, unfit)), lowered),
        skipped=_number(pc.and_(is_record, pc.fill_null(pc.equal(reason, SKIPPED), False))),
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


def _is_any(origin: pa.Array, places: Iterable[int]) -> pa.Array:
    """Whether rows came from one of some topics."""
    return pc.is_in(origin, pa.array(places, pa.int32()))


def _advance(rows: pa.Table, incarnation: Incarnation) -> Millis | None:
    """How far event time may advance: the most that was told this life of the lane."""
    told = (codec.heeded_ms(value, incarnation) for value in rows.column("value").to_pylist())
    return max((ms for ms in told if ms is not None), default=None)


def _unknown(rows: pa.Table, lowered: Lowered) -> Iterator[bytes]:
    """Of unfit records, the largest prefix of each input that names a schema to be looked up.

    One that the registry did not have may be there by the time that its record is sent again.
    """
    if not rows.num_rows:
        return
    for source in lowered.sources:
        planned = {wire.prefix(writer.handle) for writer in source.writers}
        missing = {wire.prefix(handle) for handle in source.missing}
        places = lowered.places(source)
        found = _prefixes(rows, places[TopicRole.DATA]) - missing
        if TopicRole.REDRIVE in places:
            found |= _prefixes(rows, places[TopicRole.REDRIVE])
        if found := found - planned:
            yield max(found)


def _prefixes(rows: pa.Table, place: int) -> set[bytes]:
    """The prefixes that values of a topic begin with, where they begin with one."""
    values = rows.filter(_is_any(rows.column(hidden.ORIGIN), [place])).column("value")
    found = set[bytes]()
    for magic, size in wire.PREFIXES.items():
        begun = values.filter(pc.starts_with(values, bytes((magic,))))
        found.update(pc.unique(pc.binary_slice(begun, 0, size)).to_pylist())
    return {prefix for prefix in found if wire.handle(prefix) is not None}


def _largest(rows: pa.Table, lowered: Lowered) -> dict[InputPartition, Millis]:
    """The largest event time of each partition that had good records."""
    # Threads of Arrow's own would compete with Spark's tasks.
    grouped = rows.group_by([hidden.ORIGIN, hidden.PARTITION], use_threads=False)
    found = grouped.aggregate([("timestamp_ms", "max")])
    largest: dict[InputPartition, Millis] = {}
    for row in found.to_pylist():
        source, topic = lowered.origins[row[hidden.ORIGIN]]
        partition, time_ms = row[hidden.PARTITION], row["timestamp_ms_max"]
        for at, time in most_advanced(source, topic, partition, time_ms):
            largest[at] = max(time, largest.get(at, time))
    return largest

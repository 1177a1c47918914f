"""Batch metrics (counts, largest event times) computed from the output rows of a batch.

Used if every record becomes an output row (`Lowered.counted`); computed at once in Arrow. Spark
could observe the metrics, as it does for stateful queries; but that costs more per row, grows with
the number of partitions, and splits the code that Spark generates in two. Independent of Spark.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ids import Millis
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.markers.positions import InputPartition
from pipeline.spark.query import hidden
from pipeline.spark.query.hidden import SKIPPED, UNFIT
from pipeline.spark.query.lowered import Lowered, TopicRole
from pipeline.spark.query.metrics import BatchMetrics, most_advanced, schemas_of
from schemas import wire

COLUMNS = (hidden.ORIGIN, hidden.PARTITION)
"""Columns of a row that are counted, in addition to those of results."""


def counted(rows: pa.Table, lowered: Lowered) -> BatchMetrics:
    """Count the rows of a batch.

    Args:
        rows: columns `reason`, `timestamp_ms`, `value`, and `COLUMNS`.
        lowered: the fragment.
    """
    rows = rows.select(["reason", "timestamp_ms", "value", *COLUMNS])
    reason, origin = rows.column("reason"), rows.column(hidden.ORIGIN)
    unfit = pc.fill_null(pc.equal(reason, UNFIT), fill_value=False)
    failed = pc.fill_null(pc.starts_with(reason, Reason.EVALUATION_FAILED.value), fill_value=False)
    is_record = pc.is_valid(origin)
    # A record that a box refuses counts on each path; an unfit one counts once.
    bad = pc.or_(failed, pc.and_(is_record, unfit))
    return BatchMetrics(
        records=_number(is_record),
        bad=_number(bad),
        unknown=schemas_of(_unknown(rows.filter(pc.and_(is_record, unfit)), lowered)),
        largest=_largest(rows.filter(pc.and_not(is_record, unfit)), lowered),
        skipped=_number(pc.and_(is_record, pc.fill_null(pc.equal(reason, SKIPPED), False))),
    )


def _number(mask: pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)


def _is_any(origin: pa.Array, places: Iterable[int]) -> pa.Array:
    """Whether rows came from one of the topics at `places`."""
    return pc.is_in(origin, pa.array(places, pa.int32()))


def _unknown(rows: pa.Table, lowered: Lowered) -> Iterator[bytes]:
    """The largest prefix per input among unfit records whose schema must be looked up.

    A schema that was missing from the registry may exist when its record is redriven.
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
    """The schema prefixes of the values of a topic."""
    values = rows.filter(_is_any(rows.column(hidden.ORIGIN), [place])).column("value")
    found = set[bytes]()
    for magic, size in wire.PREFIXES.items():
        begun = values.filter(pc.starts_with(values, bytes((magic,))))
        found.update(pc.unique(pc.binary_slice(begun, 0, size)).to_pylist())
    return {prefix for prefix in found if wire.handle(prefix) is not None}


def _largest(rows: pa.Table, lowered: Lowered) -> dict[InputPartition, Millis]:
    """The largest event time of each partition that had valid records."""
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

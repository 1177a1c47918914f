"""Results as records: with the headers that each one has."""

from collections.abc import Iterator

from brokers.records import Headers
from pipeline.lanes.result_headers import LATE_RESULT, RESULT_ID
from pipeline.spark.batch.results import ID, Identified, Record
from pipeline.spark.write.outgoing import OutgoingResults
from pipeline.spark.write.result_ids import ResultIds


def with_headers(results: OutgoingResults, own: Headers) -> Iterator[tuple[Record, Headers]]:
    """Results with their ids, if any, and with the mark of late ones.

    Args:
        results: to be written.
        own: headers that all of them have.
    """
    late_ms = results.late_ms
    mark = ((LATE_RESULT, b"%d" % late_ms),) if late_ms is not None else ()
    for key, value, timestamp_ms, partition, result in _identified(results):
        ids = own if result is None else (*own, (RESULT_ID, result))
        late = late_ms is not None and timestamp_ms <= late_ms
        yield (key, value, timestamp_ms, partition), (*ids, *mark) if late else ids


def _identified(results: OutgoingResults) -> Iterator[Identified]:
    rows, again = results.results, results.again
    if again is None or ID in rows.table.column_names:
        return rows.identified(results.partitions)
    ids = ResultIds(again.fragment, again.cut)
    return ((*record, ids.of(record)) for record in rows.records(results.partitions))

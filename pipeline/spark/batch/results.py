"""Output rows of a batch: Arrow columns, converted to records in chunks.

Converting a batch of 400,000 rows to Python objects at once costs more than sending them.
Independent of Spark.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import Table

from pipeline.ids import Millis
from pipeline.spark.query.failed_results import ROW_COLUMNS, FailedResult, FailedRow
from pipeline.spark.query.placing import placed

Record = tuple[bytes | None, bytes, int, int]
"""Key, value, timestamp in ms, output partition."""
Identified = tuple[bytes | None, bytes, int, int, bytes | None]
"""The same with the id; None if results have none."""
COLUMNS = ("key", "value", "timestamp_ms", "partition")
ID = "id"
ROW, HELD, ANSWERED = ROW_COLUMNS
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a batch, with the columns `COLUMNS` and `reason`, and `ID` if they have one.

    Those of an as-of join have `ROW_COLUMNS` as well.
    """

    table: Table

    def computed(self) -> "Results":
        """The rows that are results."""
        reasons = self.table.column("reason")
        if reasons.null_count == len(reasons):
            return self
        return Results(self.table.filter(pc.is_null(reasons)))

    def above(self, withheld_ms: Millis | None) -> "Results":
        """The rows above an event time; None: all.

        Those of rows that were redriven with their table version depend on nothing else: all of
        them.
        """
        if withheld_ms is None:
            return self
        published = pc.greater(self.table.column("timestamp_ms"), withheld_ms)
        if ANSWERED in self.table.column_names:
            answered = pc.fill_null(self.table.column(ANSWERED), fill_value=False)
            published = pc.or_(published, answered)
        return Results(self.table.filter(published))

    @property
    def checksum(self) -> int:
        """Sum of the checksums of the results' values: of equal results in any order, the same."""
        chunks = self.computed().table.select(["value"]).to_batches(max_chunksize=ROWS_AT_ONCE)
        return sum(sum(map(crc32, chunk.column("value").to_pylist())) for chunk in chunks)

    @property
    def size_bytes(self) -> int:
        """Size of the results' keys and values."""
        rows = self.computed().table
        sizes = (pc.sum(pc.binary_length(rows.column(name))).as_py() for name in ("key", "value"))
        return sum(size or 0 for size in sizes)

    @property
    def earliest_ms(self) -> Millis | None:
        """The least timestamp; None when there are no rows."""
        found = pc.min(self.table.column("timestamp_ms")).as_py()
        return None if found is None else Millis(found)

    def by_time(self) -> "Results":
        """Sorted by timestamp: a batch that closes many windows has no order."""
        return Results(self.table.sort_by("timestamp_ms"))

    def records(self, partitions: int) -> Iterator[Record]:
        """The results in the order of the batch, for a topic with this number of partitions."""
        return cast("Iterator[Record]", self._fine(COLUMNS, partitions))

    def identified(self, partitions: int) -> Iterator[Identified]:
        """The same with ids, if there are any."""
        if ID in self.table.column_names:
            return cast("Iterator[Identified]", self._fine((*COLUMNS, ID), partitions))
        return ((*record, None) for record in self.records(partitions))

    def _fine(self, columns: tuple[str, ...], partitions: int) -> Iterator[tuple[object, ...]]:
        for chunk in self.computed().table.select(columns).to_batches(max_chunksize=ROWS_AT_ONCE):
            fields = {name: chunk.column(name).to_pylist() for name in columns}
            pairs = zip(fields["key"], fields["value"], strict=True)
            hashed = [value if key is None else key for key, value in pairs]
            fields["partition"] = placed(fields["partition"], hashed, partitions)
            yield from zip(*fields.values(), strict=True)

    @property
    def answered(self) -> bool:
        """Whether a result is of a row that was redriven with its table version."""
        if ANSWERED not in self.table.column_names:
            return False
        return bool(pc.any(self.table.column(ANSWERED)).as_py())

    def failed(self) -> Iterator[FailedResult]:
        """The results that could not be computed."""
        reasons = self.table.column("reason")
        if reasons.null_count == len(reasons):
            return
        failed = self.table.filter(pc.is_valid(reasons))
        for row in failed.to_pylist():
            record = row.get(ROW)
            of = None if record is None else FailedRow.read(record, row[HELD])
            yield FailedResult(row["reason"], row["value"], Millis(row["timestamp_ms"]), of)


NO_RESULTS: Final = Results(pa.table({name: pa.array([]) for name in (*COLUMNS, "reason", ID)}))
"""Of no batch."""

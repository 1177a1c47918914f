"""The rows of a batch as a sink takes them over: columns of Arrow, made records bit by bit.

A batch of 400,000 rows as Python objects all at once costs more than it takes to send them. No
Spark in here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import pyarrow.compute as pc
from pyarrow import Table

from pipeline.ids import Millis
from pipeline.spark.query.failed_results import ROW_COLUMNS, FailedResult, FailedRow
from pipeline.spark.query.placing import placed

Record = tuple[bytes | None, bytes, int, int]
"""Key, value, timestamp in ms, output partition."""
Identified = tuple[bytes | None, bytes, int, int, bytes | None]
"""The same, and the id; None where results have none."""
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
        """Without the rows that are no results."""
        reasons = self.table.column("reason")
        if reasons.null_count == len(reasons):
            return self
        return Results(self.table.filter(pc.is_null(reasons)))

    @property
    def earliest_ms(self) -> Millis | None:
        """The least timestamp; None when there are no rows."""
        found = pc.min(self.table.column("timestamp_ms")).as_py()
        return None if found is None else Millis(found)

    def by_time(self) -> "Results":
        """In the order of their timestamps: a batch that closes many windows has them in none."""
        return Results(self.table.sort_by("timestamp_ms"))

    def records(self, partitions: int) -> Iterator[Record]:
        """What was computed, in the order of the batch, for a topic of so many partitions."""
        return cast("Iterator[Record]", self._fine(COLUMNS, partitions))

    def identified(self, partitions: int) -> Iterator[Identified]:
        """The same with ids, if they have some."""
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
        """Whether one is of a row that was sent again with what a table said of it."""
        if ANSWERED not in self.table.column_names:
            return False
        return bool(pc.any(self.table.column(ANSWERED)).as_py())

    def failed(self) -> Iterator[FailedResult]:
        """What could not be computed."""
        reasons = self.table.column("reason")
        if reasons.null_count == len(reasons):
            return
        failed = self.table.filter(pc.is_valid(reasons))
        for row in failed.to_pylist():
            told = row.get(ROW)
            of = None if told is None else FailedRow.read(told, row[HELD])
            yield FailedResult(row["reason"], row["value"], Millis(row["timestamp_ms"]), of)

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
from pipeline.spark.placing import placed

Record = tuple[bytes | None, bytes, int, int]
"""Key, value, timestamp in ms, output partition."""
Identified = tuple[bytes | None, bytes, int, int, bytes | None]
"""The same, and the id; None where results have none."""
Failed = tuple[str, bytes, Millis]
"""Why a result could not be computed, what it was computed from, and its time."""
COLUMNS = ("key", "value", "timestamp_ms", "partition")
ID = "id"
ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a batch, with the columns `COLUMNS` and `reason`, and `ID` if they have one."""

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

    def failed(self) -> Iterator[Failed]:
        """What could not be computed: the reason, what it was computed from, and the time."""
        reasons = self.table.column("reason")
        if reasons.null_count == len(reasons):
            return
        failed = self.table.filter(pc.is_valid(reasons))
        for row in failed.to_pylist():
            reason, value, at = row["reason"], row["value"], row["timestamp_ms"]
            yield cast("str", reason), cast("bytes", value), cast("Millis", at)

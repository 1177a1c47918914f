"""The rows of a batch as a sink takes them over. No Spark in here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from pyarrow import Table

from pipeline.ids import Millis

Record = tuple[bytes | None, bytes, int, int]
"""Key, value, timestamp in ms, partition."""


@dataclass(frozen=True, slots=True)
class Results:
    """The rows of a batch as columns; `reasons` is None when every result could be computed."""

    records: Sequence[Record]
    reasons: Sequence[str | None] | None

    @classmethod
    def of(cls, table: Table) -> "Results":
        """Take a batch over from Arrow."""
        names = ("key", "value", "timestamp_ms", "partition")
        columns = [table.column(name).to_pylist() for name in names]
        records = cast("list[Record]", list(zip(*columns, strict=True)))
        reasons = table.column("reason")
        if reasons.null_count == len(reasons):
            return cls(records, None)
        return cls(records, cast("list[str | None]", reasons.to_pylist()))

    @property
    def earliest_ms(self) -> float:
        """The least timestamp; infinite when there are no rows."""
        return min((record[2] for record in self.records), default=float("inf"))

    def after(self, limit_ms: Millis) -> "Results":
        """Without the rows at or below a time (stateless lanes have no failed results)."""
        return Results([record for record in self.records if record[2] > limit_ms], self.reasons)

    def split(self) -> tuple[Sequence[Record], list[tuple[str, Record]]]:
        """What was computed, and what could not be, with its reason."""
        if self.reasons is None:
            return self.records, []
        rows = list(zip(self.reasons, self.records, strict=True))
        return (
            [record for reason, record in rows if reason is None],
            [(reason, record) for reason, record in rows if reason is not None],
        )

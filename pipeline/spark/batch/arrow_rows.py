"""Rows of a batch as an Arrow table, without PySpark's preceding calls into Java."""

from dataclasses import dataclass

from pyarrow import Table
from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of a batch, not computed yet; their columns have plain types."""

    rows: DataFrame

    def toArrow(self) -> Table:  # noqa: N802 - Spark's name
        """Execute the batch and return its rows.

        PySpark's own call also requests settings and the schema of the rows from Java, and parses
        the schema to convert types such as timestamps. It takes several ms, as much as all Python
        work for a small batch.
        """
        # PySpark's internal collect; by the argument a table without rows still has columns.
        collect = self.rows._collect_as_arrow  # noqa: SLF001
        return Table.from_batches(collect(empty_list_if_zero_records=False))  # type: ignore[operator]

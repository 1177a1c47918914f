"""The rows of a batch as an Arrow table, without what PySpark asks Java for before."""

from dataclasses import dataclass

from pyarrow import Table
from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class ArrowRows:
    """The rows of a batch, not computed yet; they have columns of plain types."""

    rows: DataFrame

    def toArrow(self) -> Table:  # noqa: N802 - Spark's name
        """Execute the batch and hand its rows over.

        PySpark's own call asks Java for settings and for the schema of the rows as well, and reads
        that, to make types such as timestamps its own. It takes several ms, as much as all that
        Python does for a small batch.
        """
        # What PySpark collects with; the argument says that no rows are still a table with columns.
        collect = self.rows._collect_as_arrow  # noqa: SLF001
        return Table.from_batches(collect(empty_list_if_zero_records=False))  # type: ignore[operator]

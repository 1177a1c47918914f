"""The two kinds of queries, with state and without, behind one interface."""

from collections.abc import Callable
from typing import Protocol

from pyarrow import Table
from pyspark.sql import DataFrame

from pipeline.ids import Millis
from pipeline.lanes.left_out import LeftOut
from pipeline.spark.query import stateful, stateless
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.metrics import BatchMetrics
from pipeline.spark.query.observed import Observations
from pipeline.spark.query.readers import Reader


class QueryKind(Protocol):
    """A kind of query; each is a module with these functions."""

    def emit(
        self,
        lowered: Lowered,
        reader: Reader,
        left_out: tuple[LeftOut, ...],
        settled_ms: Millis | None,
    ) -> DataFrame:
        """Emit a query: rows of (key, value, timestamp_ms, partition, reason), and id if any.

        Args:
            lowered: the fragment.
            reader: reads its sources.
            left_out: records to exclude from the results, in a rebuild.
            settled_ms: the lane's promise before the query began.
        """

    def metrics(
        self, lowered: Lowered, rows: Table | None, observations: Callable[[], Observations]
    ) -> BatchMetrics:
        """The metrics of the records of an executed batch.

        Args:
            lowered: the fragment.
            rows: the rows of the batch, if they were fetched.
            observations: reads what Spark has observed of it.

        Raises:
            BrokenInvariantError: they are computed from the rows, and there are none.
        """

    def event_ms(self, lowered: Lowered) -> str:
        """SQL of a record's event time in milliseconds, for a first step of a path."""


def kind_of(lowered: Lowered) -> QueryKind:
    """The kind of a fragment's query."""
    return stateless if lowered.core is None else stateful

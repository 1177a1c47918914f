"""Deduplication as DataFrame calls: an outer join of a stream with its own earlier rows.

Spark's own dropDuplicates keeps the row that arrives first, which depends on batch boundaries. Here
a row is emitted when event time has passed it and no earlier one matches, independent of the order
of arrival. The right side contains key, time and position only.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Millis
from pipeline.network.boxes.sides import How
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.joined import LEFT_TIME, RIGHT_TIME, above, matched
from pipeline.spark.query.lowered import DeduplicateCore, JoinCore
from pipeline.spark.query.sql import quoted


def deduplicated(
    rows: DataFrame, seen: DataFrame, core: DeduplicateCore, settled_ms: Millis | None
) -> DataFrame:
    """The rows without an earlier duplicate; `seen` are the same rows again."""
    times = (hidden.EVENT_TIME, hidden.POSITION)
    narrow = seen.select(*[F.col(quoted(name)) for name in core.by], *times)
    before = f"({RIGHT_TIME} < {LEFT_TIME} OR right.{hidden.POSITION} < left.{hidden.POSITION})"
    bound = JoinCore(tuple((name, name) for name in core.by), 0, core.within_ms, How.LEFT)
    alone = matched(rows, narrow, bound, before).where(F.col(RIGHT_TIME).isNull())
    return alone.select("left.*").drop(hidden.POSITION).where(above(settled_ms))

"""Joins of two streams as DataFrame calls.

Spark keeps a row until no partner can come any more under the watermark. Of an outer join, rows
that had none until then come out at that moment; a row with a null in `on` at once.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Millis
from pipeline.network.boxes.sides import How
from pipeline.spark.query import hidden, result_ids
from pipeline.spark.query.lowered import JoinCore
from pipeline.spark.query.sql import quoted

LEFT_TIME, RIGHT_TIME = (f"{side}.{hidden.EVENT_TIME}" for side in ("left", "right"))


def joined(
    left: DataFrame, right: DataFrame, core: JoinCore, settled_ms: Millis | None, *, ids: bool
) -> DataFrame:
    """Pairs, and rows without a partner: columns `left` and `right`, time, reason, and the id.

    `settled_ms`: no row without a partner comes out at or below this time.
    """
    rows = matched(left, right, core).select(
        F.struct("left.*").alias("left"),
        F.struct("right.*").alias("right"),
        F.greatest(LEFT_TIME, RIGHT_TIME).alias(hidden.EVENT_TIME),
        F.lit(None).cast("string").alias(hidden.REASON),
        *([result_ids.of_pair().alias(hidden.ID)] if ids else []),
    )
    return rows if core.how is How.INNER else rows.where(above(settled_ms))


def matched(left: DataFrame, right: DataFrame, core: JoinCore, *more: str) -> DataFrame:
    """Both sides side by side, under the names `left` and `right`; `more` conditions of a pair."""
    conditions = [f"left.{quoted(a)} = right.{quoted(b)}" for a, b in core.on]
    # Said in so many words, else Spark takes nulls for equal, of fractions in every kind of join.
    conditions += [f"left.{quoted(a)} IS NOT NULL" for a, _ in core.on]
    conditions += [f"right.{quoted(b)} IS NOT NULL" for _, b in core.on]
    # The one form of a bound from which Spark learns how long rows have to wait.
    conditions += [
        f"{LEFT_TIME} >= {RIGHT_TIME} + {_interval(core.lower_ms)}",
        f"{LEFT_TIME} <= {RIGHT_TIME} + {_interval(core.upper_ms)}",
    ]
    on = F.expr(" AND ".join([*conditions, *more]))
    return left.alias("left").join(right.alias("right"), on, core.how.value)


def above(settled_ms: Millis | None) -> Column:
    """Whether a result lies above what the lane had promised before it began.

    It always does, unless the state was built by a plan that lets rows wait longer than the one
    that made the promise.
    """
    if settled_ms is None:
        return F.lit(True)
    return F.unix_millis(hidden.EVENT_TIME) > int(settled_ms)


def _interval(ms: int) -> str:
    return f"INTERVAL '{ms / 1000:.3f}' SECOND"

"""Joins of two streams as DataFrame calls.

Spark keeps a row until no partner can come any more under the watermark. Of an outer join, rows
that had none until then come out at that moment; a row with a null in `on` at once.

Spark compares a row with all rows of its key that the other side keeps, whatever their time. A lane
that lies behind keeps many, of a few keys, so the time that it needs would grow with their square.
So event time is cut into spans, and the span is a part of the key: a left row lies in one, and of a
right row there is a copy in each span that its partners may lie in. Rows of the right side without
a partner would come out once for each copy, so a full join goes without spans.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import Millis
from pipeline.network.boxes.sides import How
from pipeline.spark.query import hidden, result_ids
from pipeline.spark.query.lowered import JoinCore
from pipeline.spark.query.sql import quoted

COPIES: Final = 4
"""A span is so many times as long as the bound of the join: of a right row in so many, one has a
copy more."""
SPAN_LEAST_MS: Final = 1_000
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
    if core.how is How.FULL:
        return _side_by_side(left, right, [*conditions, *more], core.how)
    span_ms = max(COPIES * (core.upper_ms - core.lower_ms), SPAN_LEAST_MS)
    left = left.withColumn(hidden.SPAN, _span(0, span_ms))
    spans = F.sequence(
        _span(core.lower_ms, span_ms), _span(core.upper_ms, span_ms), F.lit(span_ms).cast("long")
    )
    right = right.withColumn(hidden.SPAN, F.explode(spans))
    conditions.append(f"left.{hidden.SPAN} = right.{hidden.SPAN}")
    found = _side_by_side(left, right, [*conditions, *more], core.how)
    return found.drop(F.col(f"left.{hidden.SPAN}"), F.col(f"right.{hidden.SPAN}"))


def _span(ahead_ms: int, span_ms: int) -> Column:
    """Where the span begins in which a row lies, or lay if its event time were so much later."""
    time = F.unix_millis(hidden.EVENT_TIME) + F.lit(ahead_ms).cast("long")
    return time - F.pmod(time, F.lit(span_ms).cast("long"))


def _side_by_side(left: DataFrame, right: DataFrame, conditions: list[str], how: How) -> DataFrame:
    on = F.expr(" AND ".join(conditions))
    return left.alias("left").join(right.alias("right"), on, how.value)


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

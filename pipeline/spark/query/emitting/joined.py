"""Joins of two streams as DataFrame calls.

Spark keeps a row until the watermark excludes further partners. An outer join emits rows without a
partner at that moment, and a row with a null in `on` at once.

Spark compares a row with all rows of its key in the state of the other side, whatever their time. A
lane that is behind keeps many rows of few keys, so the time would grow quadratically. So event time
is divided into spans, and the span is part of the key: a left row is in one span, and a right row
is copied into each span that may contain its partners. Right rows without a partner would be
emitted once per copy, so a full join has no spans.
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
"""Length of a span in units of the join's bound: one right row in this many has an extra copy."""
SPAN_LEAST_MS: Final = 1_000
LEFT_TIME, RIGHT_TIME = (f"{side}.{hidden.EVENT_TIME}" for side in ("left", "right"))


def joined(
    left: DataFrame, right: DataFrame, core: JoinCore, settled_ms: Millis | None
) -> DataFrame:
    """Emit pairs, and rows without a partner: columns `left` and `right`, time, reason, id if any.

    `settled_ms`: no row without a partner is emitted at or below this time.
    """
    ids = [result_ids.of_pair().alias(hidden.ID)] if hidden.ID in left.columns else []
    rows = matched(left, right, core).select(
        F.struct("left.*").alias("left"),
        F.struct("right.*").alias("right"),
        F.greatest(LEFT_TIME, RIGHT_TIME).alias(hidden.EVENT_TIME),
        F.lit(None).cast("string").alias(hidden.REASON),
        *ids,
    )
    return rows if core.how is How.INNER else rows.where(above(settled_ms))


def matched(left: DataFrame, right: DataFrame, core: JoinCore, *more: str) -> DataFrame:
    """Join both sides as `left` and `right`; `more` are further conditions of a pair."""
    conditions = [f"left.{quoted(a)} = right.{quoted(b)}" for a, b in core.on]
    # Explicit, else Spark treats nulls as equal; for floating point in every kind of join.
    conditions += [f"left.{quoted(a)} IS NOT NULL" for a, _ in core.on]
    conditions += [f"right.{quoted(b)} IS NOT NULL" for _, b in core.on]
    # The only form of a bound from which Spark derives how long rows must wait.
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
    """The start of the span that contains a row's event time plus `ahead_ms`."""
    time = F.unix_millis(hidden.EVENT_TIME) + F.lit(ahead_ms).cast("long")
    return time - F.pmod(time, F.lit(span_ms).cast("long"))


def _side_by_side(left: DataFrame, right: DataFrame, conditions: list[str], how: How) -> DataFrame:
    on = F.expr(" AND ".join(conditions))
    return left.alias("left").join(right.alias("right"), on, how.value)


def above(settled_ms: Millis | None) -> Column:
    """Whether a result is above the lane's promise before the query began.

    It always is, unless the state was built by a plan in which rows wait longer than in the plan
    that made the promise.
    """
    if settled_ms is None:
        return F.lit(True)
    return F.unix_millis(hidden.EVENT_TIME) > int(settled_ms)


def _interval(ms: int) -> str:
    return f"INTERVAL '{ms / 1000:.3f}' SECOND"

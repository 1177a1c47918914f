"""Stateless steps as DataFrame calls.

Records without a result are dropped, or stay as rows with a reason: a query that is counted from
its rows keeps them. `Records` is the difference of the two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.spark.query import hidden
from pipeline.spark.query.emitting.exploded import exploded, exploded_or_kept
from pipeline.spark.query.functions import called
from pipeline.spark.query.hidden import Failed
from pipeline.spark.query.lowered import Call, Check, Explode, Keep, Project, Step
from pipeline.spark.query.sql import any_failed


@dataclass(frozen=True, slots=True)
class Records:
    """What becomes of records without a result.

    Args:
        filtered: the rows after a filter, given the reason of each before it.
        exploded: a row for each element of an array.
    """

    filtered: Callable[[DataFrame, Keep, Column], DataFrame]
    exploded: Callable[[DataFrame, Explode], DataFrame]


def _dropped(rows: DataFrame, step: Keep, reason: Column) -> DataFrame:
    rows = rows.withColumn(hidden.REASON, reason)
    return rows.where(F.expr(step.where) | F.col(hidden.REASON).isNotNull())


def _kept(rows: DataFrame, step: Keep, reason: Column) -> DataFrame:
    left_out = F.when(~F.coalesce(F.expr(step.where), F.lit(False)), hidden.NO_RESULT)
    return rows.withColumn(hidden.REASON, F.coalesce(reason, left_out))


DROPPED: Final = Records(_dropped, exploded)
KEPT: Final = Records(_kept, exploded_or_kept)


def with_steps(
    rows: DataFrame,
    steps: tuple[Step, ...],
    carried: tuple[str, ...],
    records: Records = DROPPED,
    *,
    which: bool = False,
) -> DataFrame:
    """Apply stateless steps; a row that fails in one is set aside, with the failure if `which`.

    `carried`: the hidden columns that every step keeps, besides the reason.
    """
    always = (*carried, hidden.REASON)
    for step in steps:
        reason = F.col(hidden.REASON)
        failed = any_failed(step)
        if failed is not None:
            failure = _which(step.checks) if which else F.lit(Reason.EVALUATION_FAILED.value)
            reason = F.coalesce(reason, F.when(F.expr(failed), failure))
        match step:
            case Keep():
                rows = records.filtered(rows, step, reason)
            case Project():
                columns = [F.expr(sql).alias(name) for name, sql in step.columns]
                kept = [F.col(name) for name in carried]
                rows = rows.select(*kept, reason.alias(hidden.REASON), *columns)
            case Call():
                rows = called(rows, step, always)
            case Explode():
                rows = records.exploded(rows, step)
    return rows


def _which(checks: tuple[Check, ...]) -> Column:
    """The first failed check of a failed row."""
    *before, last = checks
    found = F.lit(_failure(last))
    for check in reversed(before):
        found = F.when(F.expr(check.failed), _failure(check)).otherwise(found)
    return found


def _failure(check: Check) -> str:
    return str(Failed(check.origin.box, check.origin.field, check.text))

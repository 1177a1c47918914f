"""Explode step as DataFrame calls: one row for each element of an array.

A row that is set aside stays one row, so that it counts once. The index of the element is appended
to an id.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden
from pipeline.spark.query.lowered import Explode

_AT = "__at"


def exploded(rows: DataFrame, step: Explode) -> DataFrame:
    """A row for each element."""
    array = F.col(step.element)
    # A row that is set aside needs any one element; one of the array has the right type.
    alone = F.array(F.try_element_at(array, F.lit(1)))
    elements = F.posexplode(F.when(_is_good(), array).otherwise(alone))
    rows = rows.select(*_others(rows, step), elements.alias(_at(step), step.element))
    return _identified(rows, step)


def exploded_or_kept(rows: DataFrame, step: Explode) -> DataFrame:
    """The same; a record without an element stays, and only the first of several is counted."""
    at = _at(step)
    elements = F.posexplode_outer(F.when(_is_good(), F.col(step.element)))
    rows = rows.select(*_others(rows, step), elements.alias(at, step.element))
    empty = F.when(F.col(at).isNull(), hidden.NO_RESULT)
    first = F.when(F.coalesce(F.col(at), F.lit(0)) == 0, F.col(hidden.ORIGIN))
    reason = F.coalesce(hidden.REASON, empty)
    rows = rows.withColumns({hidden.REASON: reason, hidden.ORIGIN: first})
    return _identified(rows, step)


def _at(step: Explode) -> str:
    return step.at or _AT


def _is_good() -> Column:
    return F.col(hidden.REASON).isNull()


def _others(rows: DataFrame, step: Explode) -> list[str]:
    return [name for name in rows.columns if name != step.element]


def _identified(rows: DataFrame, step: Explode) -> DataFrame:
    if hidden.ID not in rows.columns:
        return rows
    return rows.withColumn(hidden.ID, F.concat_ws("/", hidden.ID, _at(step)))

"""Explode step as DataFrame calls: one row for each element of an array."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden
from pipeline.spark.query.lowered import Explode

_AT = "__at"


def exploded(rows: DataFrame, step: Explode, *, keep_all: bool) -> DataFrame:
    """A row for each element; a row that is set aside stays one row, so that it counts once.

    The index of the element is appended to an id. `keep_all`: a record without an element stays,
    too, and only the first of several rows is counted.
    """
    at = step.at or _AT
    array, is_good = F.col(step.element), F.col(hidden.REASON).isNull()
    kept = [name for name in rows.columns if name != step.element]
    if keep_all:
        elements = F.posexplode_outer(F.when(is_good, array))
        rows = rows.select(*kept, elements.alias(at, step.element))
        empty = F.when(F.col(at).isNull(), hidden.NO_RESULT)
        first = F.when(F.coalesce(F.col(at), F.lit(0)) == 0, F.col(hidden.ORIGIN))
        reason = F.coalesce(hidden.REASON, empty)
        rows = rows.withColumns({hidden.REASON: reason, hidden.ORIGIN: first})
    else:
        # A row that is set aside needs any one element; one of the array has the right type.
        alone = F.array(F.try_element_at(array, F.lit(1)))
        elements = F.posexplode(F.when(is_good, array).otherwise(alone))
        rows = rows.select(*kept, elements.alias(at, step.element))
    if hidden.ID in kept:
        rows = rows.withColumn(hidden.ID, F.concat_ws("/", hidden.ID, at))
    return rows

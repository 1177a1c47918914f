"""The rows of a record: one for each element of an array, as DataFrame calls."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark import hidden
from pipeline.spark.lowered import Explode

_AT = "__at"


def exploded(rows: DataFrame, step: Explode, *, counts: bool) -> DataFrame:
    """A row for each element; what is set aside stays one row, so that it counts once.

    An id gets the place of the element. If it `counts`, a record without an element stays, too, and
    of several rows the first one counts.
    """
    at = step.at or _AT
    array = F.col(step.element)
    if counts:
        empty = F.coalesce(F.size(array), F.lit(0)) <= 0
        reason = F.coalesce(hidden.REASON, F.when(empty, hidden.NO_RESULT))
        rows = rows.withColumn(hidden.REASON, reason)
    # Any element will do for what is set aside; one of the array has the right type.
    alone = F.array(F.try_element_at(array, F.lit(1)))
    elements = F.when(F.col(hidden.REASON).isNull(), array).otherwise(alone)
    kept = [name for name in rows.columns if name != step.element]
    rows = rows.select(*kept, F.posexplode(elements).alias(at, step.element))
    if counts:
        origin = F.when(F.col(at) == 0, F.col(hidden.ORIGIN))
        rows = rows.withColumn(hidden.ORIGIN, origin)
    if hidden.ID in kept:
        rows = rows.withColumn(hidden.ID, F.concat_ws("/", hidden.ID, at))
    return rows

"""The rows of a record: one for each element of an array, as DataFrame calls."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark import hidden
from pipeline.spark.lowered import Explode

_AT = "__at"


def exploded(rows: DataFrame, step: Explode) -> DataFrame:
    """A row for each element; what is set aside stays one row, so that it counts once.

    An id gets the place of the element.
    """
    at = step.at or _AT
    array = F.col(step.element)
    # Any element will do for what is set aside; one of the array has the right type.
    alone = F.array(F.try_element_at(array, F.lit(1)))
    elements = F.when(F.col(hidden.REASON).isNull(), array).otherwise(alone)
    kept = [name for name in rows.columns if name != step.element]
    rows = rows.select(*kept, F.posexplode(elements).alias(at, step.element))
    if hidden.ID in kept:
        rows = rows.withColumn(hidden.ID, F.concat_ws("/", hidden.ID, at))
    return rows

"""The rows of a record: one for each element of an array, as DataFrame calls."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden
from pipeline.spark.query.lowered import Explode

_AT = "__at"


def exploded(rows: DataFrame, step: Explode, *, keep_all: bool) -> DataFrame:
    """A row for each element; what is set aside stays one row, so that it counts once.

    An id gets the place of the element. `keep_all`: a record without an element stays, too, and of
    several rows the first one counts.
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
        # Any element will do for what is set aside; one of the array has the right type.
        alone = F.array(F.try_element_at(array, F.lit(1)))
        elements = F.posexplode(F.when(is_good, array).otherwise(alone))
        rows = rows.select(*kept, elements.alias(at, step.element))
    if hidden.ID in kept:
        rows = rows.withColumn(hidden.ID, F.concat_ws("/", hidden.ID, at))
    return rows

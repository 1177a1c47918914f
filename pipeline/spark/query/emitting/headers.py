"""The headers of a record as columns."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden


def header(name: str) -> Column:
    """What the first header of a name says; null where there is none.

    Of the functions that find it Spark generates code; with a lambda it would generate none for
    all that happens to the record.
    """
    headers = F.col(hidden.HEADERS)
    at = F.array_position(headers.getField("key"), name) - 1
    return F.get(headers.getField("value"), at.cast("int"))

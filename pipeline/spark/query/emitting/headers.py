"""Header values of a record as columns."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden


def header(name: str) -> Column:
    """The value of the first header with a name; null if there is none.

    Spark generates code for these functions; with a lambda none for the whole projection.
    """
    headers = F.col(hidden.HEADERS)
    at = F.array_position(headers.getField("key"), name) - 1
    return F.get(headers.getField("value"), at.cast("int"))

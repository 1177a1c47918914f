"""Calls of user functions in a query.

The plan does not determine the result of a function. So when a batch is inspected because rows have
failed, the function must have failed for the same rows: see `checksums.py`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.spark.query import hidden
from pipeline.spark.query.function_task import FunctionTask
from pipeline.spark.query.lowered import Call
from pipeline.spark.query.sql import quoted
from pipeline.user_code.arrow import arrow_schema


def called(rows: DataFrame, step: Call, carried: tuple[str, ...]) -> DataFrame:
    """The rows that a function returns, and those for which it fails, set aside.

    `carried` are the hidden columns. One of them may be `hidden.FAILED_ON`: it then contains the
    input of the function, in the rows for which it fails.
    """
    keep_input = hidden.FAILED_ON in carried
    given = [name for name in rows.columns if not name.startswith(hidden.PREFIX)]
    rows = rows.select(*carried, *[F.col(quoted(name)) for name in given])
    task = FunctionTask(step.box, step.function, carried, keep_input)
    schema = rows.schema
    fields = [
        *(schema[name] for name in carried),
        *(
            StructField(field.name, from_arrow_type(field.type))
            for field in arrow_schema(step.function.columns)
        ),
        *(
            [StructField(hidden.GIVEN, StructType([schema[n] for n in given]))]
            if keep_input
            else []
        ),
    ]
    made = rows.mapInArrow(task, StructType(fields))
    if not keep_input:
        return made
    given_json = F.when(
        F.col(hidden.GIVEN).isNotNull(), F.to_json(hidden.GIVEN, {"ignoreNullFields": "false"})
    )
    failed_on = F.coalesce(F.col(hidden.FAILED_ON), given_json)
    return made.withColumn(hidden.FAILED_ON, failed_on).drop(hidden.GIVEN)


def checksums() -> Column:
    """The sum of `checksums.checksum` over the records that failed."""
    place = F.concat_ws("/", hidden.TOPIC, hidden.PARTITION, hidden.OFFSET)
    failed = F.col(hidden.REASON).startswith(Reason.EVALUATION_FAILED.value)
    return F.coalesce(F.sum(F.when(failed, F.crc32(place.cast("binary")))), F.lit(0))

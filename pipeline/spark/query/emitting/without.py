"""Exclusion of records that count in no result, in a rebuild."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.ids import StreamName
from pipeline.lanes.left_out import LeftOut


def without(
    raw: DataFrame, stream: StreamName, port: str, left_out: tuple[LeftOut, ...]
) -> DataFrame:
    """Exclude the records that an earlier incarnation left out on this path."""
    rows = [
        (one.at.topic, one.at.partition, int(one.offset))
        for one in left_out
        if one.at.input == stream and one.port in {"", port}
    ]
    if not rows:
        return raw
    columns = ["topic", "partition", "offset"]
    gone = raw.sparkSession.createDataFrame(rows, "topic string, partition int, offset bigint")
    return raw.join(F.broadcast(gone), columns, "left_anti")

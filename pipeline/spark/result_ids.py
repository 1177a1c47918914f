"""The ids of results, as columns: what a correction is matched by.

A result is told apart by what it was made of: the one record, the two records of a pair, or the
window and the group. So whoever computes it again, from the same input, gives it the same id. A
record that was sent again stands for the one that it is a copy of.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letters import REDRIVEN_ORIGIN
from pipeline.spark import hidden
from pipeline.spark.lowered import SessionCore, Source, TopicRole, WindowCore
from pipeline.spark.sql import quoted


def of_record(source: Source, twin: str = "") -> Column:
    """`topic/partition/offset` of a record of a source, at the place where it first stood.

    `twin`: the name of the path, where another path brings the same record to the same port.
    """
    place = F.concat_ws("/", hidden.TOPIC, hidden.PARTITION, hidden.OFFSET)
    again = F.col(hidden.TOPIC) == F.lit(source.topic(TopicRole.REDRIVE))
    origins = F.filter(hidden.HEADERS, lambda header: header["key"] == REDRIVEN_ORIGIN)
    origin = F.try_element_at(origins, F.lit(1))["value"].cast("string")
    first = F.coalesce(F.when(again, origin), place)
    return F.concat_ws("/", first, F.lit(twin)) if twin else first


def of_pair() -> Column:
    """The ids of both rows of a join."""
    return F.concat_ws("+", f"left.{hidden.ID}", f"right.{hidden.ID}")


def of_window(core: WindowCore | SessionCore) -> Column:
    """The end of the window in milliseconds, and a digest of the group if there are any."""
    end = F.unix_millis("window.end").cast("string")
    if not core.by:
        return end
    group = F.to_json(F.struct(*[F.col(quoted(name)) for name in core.by]))
    return F.concat_ws("/", end, F.md5(group))

"""Ids of results as columns, by which corrections are matched.

An id is derived from the inputs of a result: the one record, the two records of a pair, or the
window and the group; of a row without a partner, the row and an empty id. So every computation of
the same input gives the same id. For the id of one record see `places.py`.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden
from pipeline.spark.query.lowered import GroupCore
from pipeline.spark.query.sql import quoted


def of_pair() -> Column:
    """The ids of both rows of a join; empty for a missing side."""
    ids = [F.coalesce(f"{side}.{hidden.ID}", F.lit("")) for side in ("left", "right")]
    return F.concat_ws("+", *ids)


def of_window(core: GroupCore) -> Column:
    """The end of the window in milliseconds, and a digest of the group if there are any."""
    end = F.unix_millis("window.end").cast("string")
    if not core.by:
        return end
    group = F.to_json(F.struct(*[F.col(quoted(name)) for name in core.by]))
    return F.concat_ws("/", end, F.md5(group))

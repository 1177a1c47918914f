"""The ids of results, as columns: what a correction is matched by.

A result is told apart by what it was made of: the one record, the two records of a pair, or the
window and the group; of a row without a partner, the row and nothing. So whoever computes it again,
from the same input, gives it the same id. For the id of one record see `places.py`.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.spark.query import hidden
from pipeline.spark.query.lowered import GroupCore
from pipeline.spark.query.sql import quoted


def of_pair() -> Column:
    """The ids of both rows of a join; nothing stands for a side that is missing."""
    ids = [F.coalesce(f"{side}.{hidden.ID}", F.lit("")) for side in ("left", "right")]
    return F.concat_ws("+", *ids)


def of_window(core: GroupCore) -> Column:
    """The end of the window in milliseconds, and a digest of the group if there are any."""
    end = F.unix_millis("window.end").cast("string")
    if not core.by:
        return end
    group = F.to_json(F.struct(*[F.col(quoted(name)) for name in core.by]))
    return F.concat_ws("/", end, F.md5(group))

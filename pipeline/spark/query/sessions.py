"""Sessions in Spark's terms.

Spark drops a row of a session window only when a session of that row alone would have ended. A row
that came later than its own time is closed, but not by a whole gap, would be taken in, although the
session that it belongs to may be gone: what comes out would depend on how batches were cut, and no
dead letter would tell. So late rows are dropped by their own time ahead of the sessions, in the one
way of Spark's that keeps nothing for it: a join drops what is late on either side, and an outer
join hands a row on at once that its own columns already keep from every partner. See
`docs/decisions/sessions-behind-a-join-with-nothing.md`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.network.boxes.sessions import SessionWindow
from pipeline.spark.query import hidden

CUT = "__cut"
"""Groups the rows between two multiples of the longest session."""
_NO_TIME = "__no_time"


def in_time(rows: DataFrame, raw: DataFrame) -> DataFrame:
    """The rows but for those that are late by their own time; counted by Spark like any other.

    `raw` is any of the query's sources. Nothing is read from it, but Spark notes its offsets once
    more: see `leaves` in `pipeline/spark/query/lowered.py`.
    """
    nothing = raw.where(F.lit(False)).select(
        F.lit(None).cast("timestamp").alias(_NO_TIME, metadata={"spark.watermarkDelayMs": 0})
    )
    never = F.year(hidden.EVENT_TIME) < 0
    same_time = F.col(hidden.EVENT_TIME) == F.col(_NO_TIME)
    return rows.join(nothing, same_time & never, "left_outer").drop(_NO_TIME)


def with_cut(rows: DataFrame, window: SessionWindow) -> DataFrame:
    """The rows, each with the last multiple of the longest session before it."""
    at_ms = F.unix_millis(hidden.EVENT_TIME)
    return rows.withColumn(CUT, at_ms - F.pmod(at_ms, F.lit(window.longest_ms)))


def session(window: SessionWindow) -> Column:
    """The session of a row, to group by together with `CUT`."""
    return F.session_window(hidden.EVENT_TIME, f"{window.gap_ms} milliseconds")

"""Session windows as DataFrame calls, with late rows dropped before them.

Spark drops a row of a session window only when a session of that row alone would have ended. A row
that is late by its own time, but by less than a gap, would be accepted, although the session that
it belongs to may be gone: results would depend on batch boundaries, without a dead letter. So late
rows are dropped by their own time before the sessions, in the only stateless way in Spark: a join
drops late rows on either side, and an outer join emits a row at once if its own columns exclude
every partner. See `docs/decisions/sessions-behind-a-join-with-nothing.md`.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.network.boxes.sessions import SessionWindow
from pipeline.spark.query import hidden

CUT = "__cut"
"""Groups the rows between two multiples of the longest session."""
_NO_TIME = "__no_time"


def in_time(rows: DataFrame, raw: DataFrame) -> DataFrame:
    """Drop rows that are late by their own time; Spark counts them like any late row.

    `raw` is any of the query's sources. Nothing is read from it, but Spark logs its offsets once
    more: see `leaves` in `pipeline/spark/query/lowered.py`.
    """
    nothing = raw.where(F.lit(False)).select(
        F.lit(None).cast("timestamp").alias(_NO_TIME, metadata={"spark.watermarkDelayMs": 0})
    )
    never = F.year(hidden.EVENT_TIME) < 0
    same_time = F.col(hidden.EVENT_TIME) == F.col(_NO_TIME)
    joined = rows.join(nothing, same_time & never, "left_outer")
    # Holds for every row. Without a use of the other side Spark removes the join before an
    # aggregate that repeated rows do not change, such as a maximum.
    return joined.where(F.col(_NO_TIME).isNull()).drop(_NO_TIME)


def with_cut(rows: DataFrame, window: SessionWindow) -> DataFrame:
    """The rows, each with the last multiple of the longest session before it."""
    at_ms = F.unix_millis(hidden.EVENT_TIME)
    return rows.withColumn(CUT, at_ms - F.pmod(at_ms, F.lit(window.longest_ms)))


def session(window: SessionWindow) -> Column:
    """The session of a row, to group by together with `CUT`."""
    return F.session_window(hidden.EVENT_TIME, f"{window.gap_ms} milliseconds")

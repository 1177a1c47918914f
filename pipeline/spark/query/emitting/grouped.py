"""Aggregates by windows or sessions as DataFrame calls."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.windows import WINDOW_END, WINDOW_START
from pipeline.spark.query import hidden, result_ids, sessions
from pipeline.spark.query.lowered import GroupCore
from pipeline.spark.query.sql import quoted


def grouped(rows: DataFrame, core: GroupCore, *, ids: bool) -> DataFrame:
    """Emit a row for each window and group, with time, reason, and an id if `ids`."""
    window = core.window
    if isinstance(window, SessionWindow):
        rows = sessions.with_cut(rows, window)
        times = [sessions.session(window).alias("window"), F.col(sessions.CUT)]
    else:
        lengths = (window.size_ms, window.slide_ms, window.offset_ms)
        times = [F.window(hidden.EVENT_TIME, *(f"{length} milliseconds" for length in lengths))]
    functions = [F.expr(sql).alias(name) for name, sql in core.functions]
    grouped = rows.groupBy(*times, *[F.col(quoted(name)) for name in core.by])
    counted = grouped.agg(*functions) if functions else grouped.agg(F.count("*").alias("__rows"))
    return counted.select(
        *[F.col(quoted(name)) for name in core.by],
        F.col("window.start").alias(WINDOW_START),
        F.col("window.end").alias(WINDOW_END),
        *[F.col(quoted(name)) for name, _ in core.functions],
        F.col("window.end").alias(hidden.EVENT_TIME),
        F.lit(None).cast("string").alias(hidden.REASON),
        *([result_ids.of_window(core).alias(hidden.ID)] if ids else []),
    )

"""Skipped records: their event time was settled before their source was first read."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.network.boxes.shape import Shape
from pipeline.spark.query import hidden
from pipeline.spark.query.lateness import how_late
from pipeline.spark.query.lowered import Source


def is_skipped(source: Source, shape: Shape) -> Column | None:
    """Whether a validated row is skipped, never null; None if its source skips nothing.

    Redriven records are not skipped: they are late.
    """
    if source.skipped_ms is None:
        return None
    own = F.col(hidden.TOPIC) == source.data.topic
    late = how_late(shape, source.skipped_ms) == Reason.LATE.value
    return own & F.coalesce(late, F.lit(False))

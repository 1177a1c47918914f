"""Lowering of `filter`: keep the rows for which the condition is true."""

from pipeline.network.boxes.filter import Filter
from pipeline.spark.query.lowered import Keep, Step
from pipeline.spark.query.sql import checks


def lower(box: Filter) -> tuple[Step, ...]:
    """One step."""
    return (Keep(box.where.sql, checks((box.where,))),)

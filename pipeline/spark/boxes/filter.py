"""filter, lowered: keep the rows for which the condition is true."""

from pipeline.network.boxes.filter import Filter
from pipeline.spark.lowered import Keep, Step


def lower(box: Filter) -> tuple[Step, ...]:
    """One step."""
    return (Keep(box.name, box.where.sql, box.where.failed),)

"""map, lowered: compute the columns."""

from pipeline.network.boxes.map import Map
from pipeline.spark.lowered import Project, Step
from pipeline.spark.sql import any_failed


def lower(box: Map) -> tuple[Step, ...]:
    """One step."""
    columns = tuple((computed.name, computed.expression.sql) for computed in box.select)
    return (Project(box.name, columns, any_failed(c.expression for c in box.select)),)

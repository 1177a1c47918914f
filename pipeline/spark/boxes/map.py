"""map, lowered: compute the columns."""

from pipeline.network.boxes.map import Map
from pipeline.spark.lowered import Project, Step
from pipeline.spark.sql import checks


def lower(box: Map) -> tuple[Step, ...]:
    """One step."""
    columns = tuple((computed.name, computed.expression.sql) for computed in box.select)
    return (Project(columns, checks(c.expression for c in box.select)),)

"""union, lowered: each of its inputs brings the same columns, in the same order."""

from pipeline.network.boxes.union import Union
from pipeline.spark.query.lowered import Project, Step
from pipeline.spark.query.sql import quoted


def lower(box: Union) -> tuple[Step, ...]:
    """One step on the way from each input; rows come together behind all steps of their ways."""
    return (Project(tuple((column.name, quoted(column.name)) for column in box.columns), ()),)

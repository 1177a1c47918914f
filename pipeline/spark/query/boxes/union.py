"""Lowering of `union`: its inputs have the same columns, in the same order."""

from pipeline.network.boxes.union import Union
from pipeline.spark.query.lowered import Project, Step
from pipeline.spark.query.sql import quoted


def lower(box: Union) -> tuple[Step, ...]:
    """One step on the path from each input; rows are united after all steps of their paths."""
    return (Project(tuple((column.name, quoted(column.name)) for column in box.columns), ()),)

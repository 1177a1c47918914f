"""Lowering of `map`: compute the columns."""

from pipeline.network.boxes.map import Map
from pipeline.spark.query.boxes.selected import selected
from pipeline.spark.query.lowered import Step


def lower(box: Map) -> tuple[Step, ...]:
    """One step."""
    return (selected(box.select),)

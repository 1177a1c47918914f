"""map, lowered: compute the columns."""

from pipeline.network.boxes.map import Map
from pipeline.spark.boxes.selected import selected
from pipeline.spark.lowered import Step


def lower(box: Map) -> tuple[Step, ...]:
    """One step."""
    return (selected(box.select),)

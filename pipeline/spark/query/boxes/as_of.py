"""Lowering of `as_of`: the table version at the time of each row, then the selected columns."""

from pipeline.network.boxes.as_of import AsOf
from pipeline.spark.query.boxes.selected import selected
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import AsOfCore


def lower(box: AsOf) -> LoweredBox:
    """One core, and one projection after it."""
    core = AsOfCore(box.on, box.within_ms, box.how, box=box.name)
    return LoweredBox((), core, (selected(box.select),))

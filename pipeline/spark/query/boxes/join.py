"""Lowering of `join`: a join on keys within a bound of event time, then the selected columns."""

from pipeline.network.boxes.join import Join
from pipeline.spark.query.boxes.selected import selected
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import JoinCore


def lower(box: Join) -> LoweredBox:
    """One core, and one projection after it."""
    core = JoinCore(box.on, box.bound.lower_ms, box.bound.upper_ms, box.how)
    return LoweredBox((), core, (selected(box.select),))

"""join, lowered: a join on keys within a bound of event time, then the selected columns."""

from pipeline.network.boxes.join import Join
from pipeline.spark.query.boxes.selected import selected
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import JoinCore


def lower(box: Join) -> LoweredBox:
    """Nothing before, one core, one projection after."""
    core = JoinCore(box.on, box.bound.lower_ms, box.bound.upper_ms, box.how)
    return LoweredBox((), core, (selected(box.select),))

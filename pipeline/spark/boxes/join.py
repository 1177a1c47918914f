"""join, lowered: a join on keys within a bound of event time, then the selected columns."""

from pipeline.network.boxes.join import Join
from pipeline.spark.boxes.stateful import LoweredBox
from pipeline.spark.lowered import JoinCore, Project
from pipeline.spark.sql import checks


def lower(box: Join) -> LoweredBox:
    """Nothing before, one core, one projection after."""
    core = JoinCore(box.on, box.bound.lower_ms, box.bound.upper_ms, box.how)
    after = Project(
        tuple((computed.name, computed.expression.sql) for computed in box.select),
        checks(computed.expression for computed in box.select),
    )
    return LoweredBox((), core, (after,))

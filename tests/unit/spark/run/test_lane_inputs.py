"""Inputs of a lane: the schemas that it has met, and the plan with them."""

from types import SimpleNamespace
from typing import cast

from pipeline.ids import SchemaHandle, SchemaId
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs

MET: tuple[SchemaHandle, ...] = (SchemaId(9),)


def test_a_copy_has_the_same_schemas_and_plan() -> None:
    """And is another one: what the fork meets later is not the stable lane's."""
    inputs = LaneInputs(cast("LaneHost", SimpleNamespace()))
    plan = cast("Lowered", object())
    inputs._met, inputs.latest = MET, plan
    copied = inputs.copy()
    assert (copied._met, copied.latest) == (MET, plan)
    copied._met, copied.latest = (), None
    assert (inputs._met, inputs.latest) == (MET, plan)

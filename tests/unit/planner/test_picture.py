from pipeline.network.drawing.picture import DrawnBox, Inflow
from pipeline.planner.picture import fragments_picture
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, tolls


def test_a_diagram_of_a_plan_has_a_group_for_each_fragment() -> None:
    """With the boxes that the planner made, and the topics between the fragments."""
    drawn = fragments_picture(plan(tolls(), OWNER))
    assert [part.name for part in drawn.parts] == [
        "fragment tolls", "fragment toll_notifications", "fragment tow_dispatch"
    ]  # fmt: skip
    first, second, _ = drawn.parts
    assert first.boxes == (
        DrawnBox("tolls_windows", "aggregate", ("sightings",), ()),
        DrawnBox("tolls", "map", ("tolls_windows",), ("local.net.tolls",)),
    )
    assert Inflow("tolls", "local.net.tolls") in second.inflows
    assert [inflow.name for inflow in drawn.outside()] == ["sightings"]

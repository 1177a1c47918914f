"""Estimated costs of fragments."""

import pytest

from pipeline.planner.boxes.catalogue import KINDS
from pipeline.planner.cost import COSTS_US, READ_AND_WRITE_US, estimated_cost_us
from tests.unit.planner.passes.test_share_box_settings import planned


def test_every_kind_of_box_has_a_cost() -> None:
    """And nothing else has."""
    assert COSTS_US.keys() == KINDS.keys()


@pytest.mark.parametrize(
    ("box", "more_us"),
    [
        ("{filter: s, where: speed > 0}", 0),
        ("{aggregate: s, window: 1m, compute: {n: count(*)}}", 4),
        ("{aggregate: s, session: 1m, compute: {n: count(*)}}", 40),
        ("{deduplicate: s, by: [car], within: 1s}", 288),
    ],
)
def test_a_fragment_costs_what_its_boxes_do(box: str, more_us: int) -> None:
    """And reading and writing."""
    (fragment,) = planned(f"\n  x: {box}\n").fragments
    assert estimated_cost_us(fragment) == READ_AND_WRITE_US + more_us

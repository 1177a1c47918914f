"""Metering of a node that runs a fragment."""

import pytest

from pipeline.catalog.load_records import FragmentLoad, NodeLoadRecord
from pipeline.ids import FragmentName
from tests.system.nodes.feeds import COUNTS, fed, running_nodes
from tests.system.support import Installation

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

NAME, NODE = "metered", "meter_a"
WITHIN_S = 90.0


def loads(medusa: Installation) -> dict[FragmentName, FragmentLoad]:
    """The last loads, by fragment."""
    return {one.fragment: one for node in medusa.catalog.loads.all() for one in node.fragments}


def test_each_fragment_is_metered_with_all_its_parts(medusa: Installation) -> None:
    """Its threads, its tasks, its share of what is common, and what it reads and writes."""
    found: list[NodeLoadRecord] = []

    def metered() -> bool:
        rows = loads(medusa)
        if COUNTS not in rows:
            return False
        one = rows[COUNTS]
        found[:] = medusa.catalog.loads.all()
        parts = one.planning, one.tasks, one.writing, one.shared
        return min(parts) > 0 and min(one.records_in, one.bytes_in) > 0

    with running_nodes(medusa, NODE), fed(medusa, NAME):
        medusa.wait_for(metered, "the fragment is metered", within_s=WITHIN_S)
    (node,) = found
    assert node.node == NODE
    assert node.core_permille > 0
    assert 0 < node.metering < 0.05 * node.total
    charged = sum(one.total for one in node.fragments)
    assert charged <= node.total
    assert node.total <= 1.2 * (charged + node.overhead)

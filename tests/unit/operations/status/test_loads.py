"""Loads of fragments and nodes are those of the present owner and life."""

from dataclasses import replace

from pipeline.ids import Millis
from pipeline.operations.status.loads import loads_of, with_loads
from pipeline.operations.status.observed import ObservedFragment
from tests.unit.catalog.support import NODE1, NODE2, NOTHING_READ, fragment, node
from tests.unit.catalog.test_node_loads import LOAD


def test_a_fragment_has_the_load_that_its_node_has_metered() -> None:
    """Not what another node has, which ran it before, nor that of a node that is down."""
    seen = ObservedFragment(fragment(), NOTHING_READ, node_up=True)
    (found,) = with_loads([seen], [replace(LOAD, node=NODE2, fragments=()), LOAD])
    assert found.load == LOAD.fragments[0]
    assert with_loads([seen], [replace(LOAD, node=NODE2)]) == (seen,)
    for other in (replace(seen, status=None), replace(seen, node_up=False)):
        assert with_loads([other], [LOAD]) == (other,)


def test_a_node_has_the_load_of_its_present_life() -> None:
    """One of an earlier process says nothing of this one."""
    up = node(NODE1)
    assert loads_of([up], [LOAD]) == {(LOAD.participant, NODE1): LOAD}
    assert loads_of([up], [replace(LOAD, life=Millis(1))]) == {}

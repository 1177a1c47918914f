import pytest

from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.fragments import fragment_of, fragments_of, label, plan_of


def test_a_name_is_that_of_a_network_or_of_a_fragment_or_of_both(connections: Connections) -> None:
    """The empty name is all fragments."""
    for name in ("", "cars"):
        found = fragments_of(name, connections)
        assert [label(one) for one in found] == ["cars.moving", "cars.stopped"]
    for name in ("moving", "cars.moving"):
        assert label(fragment_of(name, connections)) == "cars.moving"


def test_a_name_that_means_none_or_several_is_refused(connections: Connections) -> None:
    """The error lists those that exist."""
    with pytest.raises(RefusedError, match="no network or fragment x") as missing:
        fragments_of("x", connections)
    assert missing.value.hint == "there is: cars.moving, cars.stopped."
    with pytest.raises(RefusedError, match="cars means several fragments"):
        fragment_of("cars", connections)


def test_a_fragment_has_the_plan_of_its_network(connections: Connections) -> None:
    """The plan of the deployed version."""
    fragment = fragment_of("moving", connections)
    assert fragment in plan_of(fragment, connections).fragments

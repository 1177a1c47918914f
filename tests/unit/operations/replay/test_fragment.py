import pytest

from pipeline.errors import RefusedError
from pipeline.operations.connections import Connections
from pipeline.operations.replay.fragment import replayed_fragment


@pytest.mark.parametrize("name", ["moving", "cars.moving"])
def test_a_replayed_fragment_is_of_the_deployed_version(
    connections: Connections, name: str
) -> None:
    """With the ids of its topics."""
    found = replayed_fragment(name, connections)
    assert (found.place, found.version) == ("fragment cars.moving", 1)
    assert "car-sightings" in found.topic_ids


def test_what_no_box_computes_is_refused(connections: Connections) -> None:
    """The error lists the fragments."""
    with pytest.raises(RefusedError, match="no fragment or box x") as refused:
        replayed_fragment("x", connections)
    assert refused.value.hint == "there is: cars.moving, cars.stopped."

import pytest

from pipeline.errors import RefusedError
from pipeline.ids import NetworkId, NetworkName, ParticipantId
from pipeline.operations.connections import Connections
from pipeline.operations.status.fragments import fragments_status


def test_the_fragments_of_one_network_or_of_all(connections: Connections) -> None:
    """No node has reported yet."""
    for network in (None, NetworkId(ParticipantId("local"), NetworkName("cars"))):
        found = fragments_status(network, connections)
        assert [(one.name, one.state) for one in found] == [
            ("cars.moving", "pending"),
            ("cars.stopped", "pending"),
        ]


def test_a_network_that_is_not_deployed_is_refused(connections: Connections) -> None:
    """The error lists the deployed ones."""
    with pytest.raises(RefusedError, match="network x is not deployed") as refused:
        fragments_status(NetworkId(ParticipantId("local"), NetworkName("x")), connections)
    assert refused.value.hint == "there is: cars."

from dataclasses import replace

import pytest

from pipeline.catalog.records import LaneState
from pipeline.errors import RefusedError
from pipeline.ids import NO_EPOCH, FragmentName, NetworkId, NetworkName, ParticipantId
from pipeline.operations.connections import Connections
from pipeline.operations.status.fragments import fragments_status, networks_status
from tests.unit.catalog.support import NOTHING_READ


def test_the_fragments_of_one_network_or_of_all(connections: Connections) -> None:
    """No node has reported yet."""
    for network in (None, NetworkId(ParticipantId("local"), NetworkName("cars"))):
        found = fragments_status(network, connections)
        assert [(one.name, one.state) for one in found] == [
            ("cars.moving", "pending"),
            ("cars.stopped", "pending"),
        ]


def test_a_failure_before_the_first_claim_is_reported(connections: Connections) -> None:
    """Other reports from before it are not; nor is an old failure after a deploy."""
    cars, moving = NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("moving")
    failed = replace(
        NOTHING_READ,
        network=cars,
        fragment=moving,
        epoch=NO_EPOCH,
        state=LaneState.FAILED,
        last_error="planning failed",
    )
    connections.catalog.statuses.report(failed)
    (found, _) = networks_status(connections, (cars,))
    assert found.status == failed
    (found, _) = networks_status(connections, (cars,), {moving: NO_EPOCH})
    assert found.status is None
    connections.catalog.statuses.report(replace(failed, state=LaneState.STARTING))
    (found, _) = networks_status(connections, (cars,))
    assert found.status is None


def test_a_network_that_is_not_deployed_is_refused(connections: Connections) -> None:
    """The error lists the deployed ones."""
    with pytest.raises(RefusedError, match="network x is not deployed") as refused:
        fragments_status(NetworkId(ParticipantId("local"), NetworkName("x")), connections)
    assert refused.value.hint == "there is: cars."

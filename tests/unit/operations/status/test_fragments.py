import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.errors import RefusedError
from pipeline.ids import NO_EPOCH, FragmentName, NetworkId, NetworkName, ParticipantId
from pipeline.operations.connections import Connections
from pipeline.operations.status.fragments import fragments_status, networks_status
from tests.unit.catalog.support import NOTHING_READ, node
from tests.unit.deploy.twins import DOCUMENT, World, write_project


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


def test_a_fragment_waits_for_one_of_another_network(
    connections: Connections, world: World, tmp_path: Path
) -> None:
    """Which is named, and not listed."""
    path = write_project(tmp_path / "roads", re.sub(r"\bcars\b", "roads", DOCUMENT))
    document, local = read_document(path, lambda _: None), ParticipantId("local")
    deploy(compare(document, local, world.servers), world.servers, lambda _: None)
    roads, cars = (NetworkId(local, NetworkName(name)) for name in ("roads", "cars"))
    running = replace(NOTHING_READ, state=LaneState.RUNNING, fragment=FragmentName("moving"))
    reader = replace(running, network=roads, writers=("local.cars.moving",))
    connections.catalog.nodes.register(node())
    for one in (reader, replace(running, network=cars, state=LaneState.WAITING)):
        connections.catalog.statuses.report(one)
    found = fragments_status(roads, connections)
    assert {one.record.network for one in found} == {roads}
    assert [one.waits_for for one in found if one.status] == [("cars.moving",)]


def test_a_network_that_is_not_deployed_is_refused(connections: Connections) -> None:
    """The error lists the deployed ones."""
    with pytest.raises(RefusedError, match="network x is not deployed") as refused:
        fragments_status(NetworkId(ParticipantId("local"), NetworkName("x")), connections)
    assert refused.value.hint == "there is: cars."


def test_what_no_node_has_room_for_is_queued(connections: Connections) -> None:
    """By the limits of the nodes that are up."""
    cars = NetworkId(ParticipantId("local"), NetworkName("cars"))
    connections.catalog.nodes.register(replace(node(), most_fragments=1))
    states = sorted(one.state for one in networks_status(connections, (cars,)))
    assert states == ["pending", "queued"]

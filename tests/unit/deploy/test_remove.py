from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import NodeRecord
from pipeline.clock import Deadline
from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.remove import await_stopped, deployed, destroy, doomed, stop
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import (
    FragmentName,
    GroupName,
    Millis,
    NetworkId,
    NetworkName,
    NodeId,
    ParticipantId,
    TopicName,
)
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.deploy.twins import DOCUMENT, NOW, World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))
NODE = NodeRecord(NodeId("n1"), US, "host", 1, NOW, "0", reads=1)
MOVING = FragmentName("moving")
HOUR_MS = 3_600_000


def _deployed(folder: Path, world: World | None = None, document: str = DOCUMENT) -> World:
    world = world or World.new()
    found = compare(
        read_document(write_project(folder, document), lambda _: None), US, world.servers
    )
    deploy(found, world.servers, lambda _: None)
    return world


def _run(world: World, state: LaneState) -> None:
    """Claim one fragment for a node, and report its state."""
    world.catalog.nodes.register(NODE)
    world.catalog.owners.claim(CARS, MOVING, NODE, NOW)
    _report(world, state)


def _report(world: World, state: LaneState) -> None:
    owner = world.catalog.owners.get(CARS, MOVING)
    assert owner is not None
    status = replace(NOTHING_READ, network=CARS, fragment=MOVING, node=NODE.node)
    world.catalog.statuses.report(replace(status, epoch=owner.epoch, state=state))


def test_stop_is_idempotent(tmp_path: Path) -> None:
    """The second call changes nothing."""
    world = _deployed(tmp_path)
    assert stop(CARS, world.catalog)
    assert not stop(CARS, world.catalog)


def test_the_error_for_an_unknown_network_names_those_that_exist(tmp_path: Path) -> None:
    """So that a typing error can be corrected."""
    world = _deployed(tmp_path)
    with pytest.raises(RefusedError) as caught:
        deployed(NetworkId(US, NetworkName("card")), world.catalog)
    assert "cars" in caught.value.hint


def test_waiting_fails_at_the_deadline_with_the_running_fragments(tmp_path: Path) -> None:
    """The error names the fragment that still runs."""
    world = _deployed(tmp_path)
    _run(world, LaneState.RUNNING)
    stop(CARS, world.catalog)
    with pytest.raises(RetryError) as caught:
        await_stopped(CARS, world.servers, Deadline.after(world.clock, 5, "stopping"))
    assert "moving" in caught.value.hint


def test_waiting_ends_when_the_node_reports_or_is_not_up(tmp_path: Path) -> None:
    """A node that is not up runs nothing, nor does its next life before a claim."""
    world = _deployed(tmp_path)
    _run(world, LaneState.RUNNING)
    stop(CARS, world.catalog)
    _report(world, LaneState.STOPPED)
    await_stopped(CARS, world.servers, Deadline.after(world.clock, 1, "stopping"))
    _report(world, LaneState.RUNNING)
    world.store.expire()
    await_stopped(CARS, world.servers, Deadline.after(world.clock, 1, "stopping"))
    world.catalog.nodes.register(replace(NODE, started_at_ms=Millis(NOW + 1)))
    await_stopped(CARS, world.servers, Deadline.after(world.clock, 1, "stopping"))


@pytest.mark.parametrize("jump_ms", [-5 * HOUR_MS, 2 * HOUR_MS])
def test_a_changed_clock_of_a_node_does_not_hide_running_fragments(
    tmp_path: Path, jump_ms: int
) -> None:
    """A claim contains the life of the node; its time does not matter."""
    world = _deployed(tmp_path)
    _run(world, LaneState.RUNNING)
    world.catalog.owners.claim(CARS, MOVING, NODE, Millis(NOW + jump_ms))
    stop(CARS, world.catalog)
    with pytest.raises(RetryError):
        await_stopped(CARS, world.servers, Deadline.after(world.clock, 1, "stopping"))
    world.store.expire()
    world.catalog.nodes.register(replace(NODE, started_at_ms=Millis(NOW - 9 * HOUR_MS)))
    await_stopped(CARS, world.servers, Deadline.after(world.clock, 1, "stopping"))


def test_destroy_removes_created_resources_and_nothing_else(tmp_path: Path) -> None:
    """Inputs and pre-existing topics stay; created topics, groups and catalog records go."""
    world = World.new()
    world.kafka.add("moving-cars")
    _deployed(tmp_path, world)
    group = GroupName("us.cars.moving")
    for name in (group, GroupName("somebody-else")):
        world.kafka.group_writer(name).commit({}, lambda _: None)
    what = doomed(CARS, world.servers)
    assert TopicName("moving-cars") in what.kept_topics
    assert TopicName("car-sightings") in what.kept_topics
    destroy(what, world.servers, Deadline.after(world.clock, 5, "destroying"), lambda _: None)
    assert set(world.kafka.topics) == {"moving-cars", "car-sightings"}
    assert set(world.kafka.groups) == {"somebody-else"}
    assert world.catalog.networks.get(CARS) is None


def test_destroy_also_removes_resources_of_earlier_versions(tmp_path: Path) -> None:
    """Nothing remains of a fragment that a later version removed."""
    world = _deployed(tmp_path)
    fewer = DOCUMENT.replace("  stopped: {filter: sightings, where: speed = 0}\n", "").replace(
        "  stopped: {topic: stopped-cars}\n", ""
    )
    _deployed(tmp_path, world, fewer)
    assert TopicName("stopped-cars") in world.kafka.topics
    what = doomed(CARS, world.servers)
    assert "us.cars.stopped" in what.groups
    destroy(what, world.servers, Deadline.after(world.clock, 5, "destroying"), lambda _: None)
    assert set(world.kafka.topics) == {"car-sightings"}


def test_destroy_removes_topics_created_since_it_was_requested(tmp_path: Path) -> None:
    """Created before the user confirmed; without catalog records they could never be removed."""
    fewer = DOCUMENT.replace("  stopped: {filter: sightings, where: speed = 0}\n", "").replace(
        "  stopped: {topic: stopped-cars}\n", ""
    )
    world = _deployed(tmp_path, document=fewer)
    what = doomed(CARS, world.servers)
    _deployed(tmp_path, world)
    assert TopicName("us.cars.stopped.markers") in world.kafka.topics
    deadline = Deadline.after(world.clock, 5, "destroying")
    done = destroy(what, world.servers, deadline, lambda _: None)
    assert TopicName("us.cars.stopped.markers") in set(done.topics) - set(what.topics)
    assert set(world.kafka.topics) == {"car-sightings"}


def test_a_network_deployed_while_its_topics_are_deleted_stays_in_the_catalog(
    tmp_path: Path,
) -> None:
    """Else no record would contain the topics that this deploy created."""
    fewer = DOCUMENT.replace("  stopped: {filter: sightings, where: speed = 0}\n", "").replace(
        "  stopped: {topic: stopped-cars}\n", ""
    )
    world = _deployed(tmp_path, document=fewer)
    what, deadline = doomed(CARS, world.servers), Deadline.after(world.clock, 5, "destroying")

    def deploy_again(step: str) -> None:
        if step.startswith("deleting"):
            _deployed(tmp_path, world)

    with pytest.raises(RetryError, match="deployed again meanwhile") as caught:
        destroy(what, world.servers, deadline, deploy_again)
    assert "destroy it again" in caught.value.hint
    destroy(doomed(CARS, world.servers), world.servers, deadline, lambda _: None)
    assert set(world.kafka.topics) == {"car-sightings"}
    assert world.catalog.networks.get(CARS) is None


def test_nothing_is_removed_while_a_fragment_runs(tmp_path: Path) -> None:
    """If a lane does not stop in time, topics and catalog are unchanged."""
    world = _deployed(tmp_path)
    _run(world, LaneState.RUNNING)
    what = doomed(CARS, world.servers)
    with pytest.raises(RetryError):
        destroy(what, world.servers, Deadline.after(world.clock, 5, "destroying"), lambda _: None)
    assert TopicName("moving-cars") in world.kafka.topics
    assert world.catalog.networks.get(CARS) is not None


def test_a_deploy_after_a_destroy_begins_anew(tmp_path: Path) -> None:
    """It has version 1, in another life; earlier deploys share one life."""
    world = _deployed(tmp_path)
    _deployed(tmp_path, world, DOCUMENT.replace("speed > 0", "speed > 5"))
    what = doomed(CARS, world.servers)
    assert (what.network.version, what.network.life) == (2, "life-1")
    destroy(what, world.servers, Deadline.after(world.clock, 5, "destroying"), lambda _: None)
    _deployed(tmp_path, world)
    network = world.catalog.networks.get(CARS)
    assert network is not None
    assert (network.version, network.life) == (1, "life-2")


def test_a_destroy_requested_in_an_earlier_life_removes_nothing(tmp_path: Path) -> None:
    """The network was destroyed and deployed again before the user confirmed."""
    world = _deployed(tmp_path)
    what = doomed(CARS, world.servers)
    deadline = Deadline.after(world.clock, 5, "destroying")
    destroy(what, world.servers, deadline, lambda _: None)
    _deployed(tmp_path, world)
    with pytest.raises(RetryError, match="destroyed and deployed again"):
        destroy(what, world.servers, deadline, lambda _: None)
    assert world.catalog.networks.get(CARS) is not None
    assert TopicName("moving-cars") in world.kafka.topics

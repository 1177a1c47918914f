"""Output topics with records from before their network first wrote them."""

from pathlib import Path

import pytest

from pipeline.clock import Deadline
from pipeline.deploy.apply import Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.remove import destroy, doomed
from pipeline.errors import DeployError
from pipeline.ids import NetworkId, NetworkName, ParticipantId, TopicName
from tests.unit.deploy.twins import World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))
CHAIN = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
  fast: {filter: moving, where: speed > 100}
outputs:
  moving: {topic: moving-cars}
"""
ALONE = CHAIN.replace("  fast: {filter: moving, where: speed > 100}\n", "")


@pytest.mark.parametrize("topic", ["moving-cars", "moving-cars.boundaries"])
def test_what_an_earlier_life_has_written_counts_in_no_result(topic: str, tmp_path: Path) -> None:
    """Destroy keeps a topic of others with its records, which name it as new results do."""
    world = World.new()
    world.kafka.add("moving-cars")
    _deploy(world, tmp_path, CHAIN)
    if topic not in world.kafka.topics:
        world.kafka.add(topic, partitions=1)
    first = world.catalog.networks.get(CARS)
    assert first is not None
    kept = {TopicName("car-sightings"), TopicName("moving-cars"), TopicName(topic)}
    destroy(doomed(CARS, world.servers), world.servers, _deadline(world), lambda _: None)
    if topic not in world.kafka.topics:
        world.kafka.add(topic, partitions=1)
    assert kept <= set(world.kafka.topics)
    world.kafka.fill(topic)
    with pytest.raises(DeployError, match="topic moving-cars, which fast reads, held records"):
        _deploy(world, tmp_path, CHAIN)
    assert _deploy(world, tmp_path, CHAIN.replace("moving-cars", "other-cars")).changed


def test_a_reader_that_comes_later_is_refused_as_well(tmp_path: Path) -> None:
    """The catalog has kept it; what the network has written itself may be read."""
    world = World.new()
    world.kafka.add("moving-cars", records=3)
    world.registry.register("moving-cars-value", _written(tmp_path))
    _deploy(world, tmp_path, ALONE)
    assert not _deploy(world, tmp_path, ALONE).changed
    with pytest.raises(DeployError, match="topic moving-cars, which fast reads, held records"):
        _deploy(world, tmp_path, CHAIN)
    world = World.new()
    world.kafka.add("moving-cars")
    _deploy(world, tmp_path, ALONE)
    world.kafka.fill("moving-cars", records=3)
    assert _deploy(world, tmp_path, CHAIN).changed


def _written(folder: Path) -> str:
    """The schema of the output."""
    world = World.new()
    _deploy(world, folder, ALONE)
    found = world.registry.latest("moving-cars-value")
    assert found is not None
    return found.text


def _deadline(world: World) -> Deadline:
    return Deadline.after(world.clock, 1.0, "destroying")


def _deploy(world: World, folder: Path, document: str) -> Deployed:
    read = read_document(write_project(folder, document), lambda _: None)
    return deploy(compare(read, US, world.servers), world.servers, lambda _: None)

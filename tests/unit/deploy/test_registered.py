from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.clock import Deadline
from pipeline.deploy.apply import Comparison, compare, deploy
from pipeline.deploy.documents import Document, read_document
from pipeline.deploy.remove import destroy, doomed, stop
from pipeline.deploy.versions import document_of
from pipeline.errors import DeployError
from pipeline.ids import NetworkId, NetworkName, NetworkVersion, ParticipantId
from tests.unit.deploy.twins import World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))
SUBJECT = "car-sightings-value"
SCHEMA = """\
{"type": "record", "name": "Sighting", "fields": [
  {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["car", "bus"]}},
  {"name": "speed", "type": "double"},
  {"name": "seen_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
]}
"""
WITH_LORRIES = SCHEMA.replace('"bus"]', '"bus", "lorry"]')
DOCUMENT = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
outputs:
  moving: {topic: moving-cars}
"""
WARNING = "stream sightings cannot read version 2 of car-sightings-value"


def _document(folder: Path, text: str = DOCUMENT, schema: str = SCHEMA) -> Document:
    return read_document(write_project(folder, text, schema), lambda _: None)


def _compare(world: World, document: Document) -> Comparison:
    return compare(document, US, world.servers)


def _deploy(world: World, document: Document) -> Comparison:
    found = _compare(world, document)
    deploy(found, world.servers, lambda _: None)
    return found


def _unchanged(_: World, folder: Path) -> Document:
    return _document(folder)


def _after_a_stop(world: World, folder: Path) -> Document:
    stop(CARS, world.catalog)
    return _document(folder)


def _after_a_destroy(world: World, folder: Path) -> Document:
    what = doomed(CARS, world.servers)
    destroy(what, world.servers, Deadline.after(world.clock, 5, "destroying"), lambda _: None)
    return _document(folder)


def _rolled_back(world: World, folder: Path) -> Document:
    _deploy(world, _document(folder, DOCUMENT.replace("speed > 0", "speed > 1")))
    network = world.catalog.networks.get(CARS)
    assert network is not None
    return document_of(network, NetworkVersion(1), world.catalog)


@pytest.mark.parametrize("again", [_unchanged, _after_a_stop, _after_a_destroy, _rolled_back])
def test_a_newer_schema_of_a_producer_is_a_warning(
    tmp_path: Path, again: Callable[[World, Path], Document]
) -> None:
    """What runs beside a schema is deployed beside it: only the new symbol is a dead letter."""
    world = World.new()
    _deploy(world, _document(tmp_path))
    world.registry.register(SUBJECT, WITH_LORRIES)
    found = _deploy(world, again(world, tmp_path))
    (warning,) = found.changes.warnings
    assert warning.startswith(WARNING)
    assert "lorry" in warning
    assert warning.endswith("its records become dead letters")


def test_what_runs_goes_on_when_the_versions_that_it_reads_are_gone(tmp_path: Path) -> None:
    """Nothing is readable that the registry has, and nothing is deployed otherwise."""
    world = World.new()
    document = _document(tmp_path)
    found = _deploy(world, document)
    elsewhere = World.new()
    elsewhere.registry.register(SUBJECT, WITH_LORRIES)
    world.registry = elsewhere.registry
    for schema in found.changes.register:
        if schema.subject != SUBJECT:
            world.registry.register(schema.subject, schema.schema_json)
    found = _deploy(world, document)
    assert "version 1 of car-sightings-value" in found.changes.warnings[0]
    with pytest.raises(DeployError, match="which producers write"):
        _deploy(world, _document(tmp_path, DOCUMENT.replace("speed > 0", "speed > 1")))


def test_a_schema_that_reads_no_version_is_refused(tmp_path: Path) -> None:
    """A mistake in the document: every record would be a dead letter."""
    world = World.new()
    world.registry.register(SUBJECT, WITH_LORRIES)
    with pytest.raises(DeployError, match=r"which producers write: .*lorry"):
        _deploy(world, _document(tmp_path))
    assert not world.kafka.topics


def test_a_column_that_nothing_reads_is_in_nobodys_way(tmp_path: Path) -> None:
    """No warning either: its records are read."""
    world = World.new()
    narrow = DOCUMENT.replace(
        "{filter: sightings, where: speed > 0}", "{map: sightings, select: {speed: speed}}"
    )
    _deploy(world, _document(tmp_path, narrow))
    world.registry.register(SUBJECT, WITH_LORRIES)
    assert not _deploy(world, _document(tmp_path, narrow)).changes.warnings

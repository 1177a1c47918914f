"""A stream that names a subject, whose producers register versions that a state does not fit."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.deploy.apply import Comparison, compare, deploy
from pipeline.deploy.documents import Document, read_document
from pipeline.deploy.remove import stop
from pipeline.deploy.subject_schemas import undecided_fragments
from pipeline.deploy.versions import difference, document_of
from pipeline.errors import DeployError
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentName,
    Incarnation,
    NetworkId,
    NetworkName,
    NetworkVersion,
    ParticipantId,
    StreamName,
    TopicId,
)
from pipeline.lanes.source_ids import first_sources, planned_sources
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.planner.digest import state_digest
from pipeline.planner.state import NO_CHOICES, Choices, Fate, OnChange
from tests.unit.deploy.twins import NOW, World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))
SUBJECT = "sightings-of-all"
SCHEMA = """\
{"type": "record", "name": "Sighting", "fields": [
  {"name": "kind", "type":
    {"type": "enum", "name": "Kind", "symbols": ["car", "bus"], "default": "car"}},
  {"name": "speed", "type": "int"},
  {"name": "seen_at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
]}
"""
WITH_LORRIES = SCHEMA.replace('"bus"]', '"bus", "lorry"]')
WITHOUT_BUSES = SCHEMA.replace(', "bus"]', "]").replace(', "default": "car"', "")
WIDER = SCHEMA.replace('"int"', '"long"')
DOCUMENT = f"""\
network: cars
streams:
  sightings: {{topic: car-sightings, subject: {SUBJECT}, event_time: seen_at}}
boxes:
  moving: {{filter: sightings, where: speed > 0}}
  counts: {{aggregate: moving, window: 10s, by: [kind], compute: {{n: count(*), most: max(speed)}}}}
outputs:
  moving: {{topic: moving-cars}}
"""
COUNTS = FragmentName("counts")
SIGHTINGS = StreamName("sightings")


def _document(world: World, folder: Path, text: str = DOCUMENT) -> Document:
    def read_subject(subject: str) -> str | None:
        found = world.registry.latest(subject)
        return found.text if found else None

    return read_document(write_project(folder, text), read_subject)


def _compare(world: World, document: Document, choices: Choices = NO_CHOICES) -> Comparison:
    return compare(document, US, world.servers, choices)


def _deploy(world: World, document: Document) -> Comparison:
    found = _compare(world, document)
    deploy(found, world.servers, lambda _: None)
    return found


def _deployed(folder: Path, schema: str = SCHEMA, document: str = DOCUMENT) -> World:
    """The network is deployed with a schema, and the aggregates have a state."""
    world = World.new()
    world.registry.register(SUBJECT, schema)
    _runs(world, _deploy(world, _document(world, folder, document)))
    world.kafka.fill("car-sightings")
    return world


def _runs(world: World, found: Comparison) -> None:
    """The stateful fragments have a state of this plan."""
    for fragment in found.plan.fragments:
        if fragment.stateful_box is not None:
            ids = {name: TopicId(topic.topic_id) for name, topic in world.kafka.topics.items()}
            request = StartRequest(
                Epoch(1),
                state_digest(fragment),
                stateful=True,
                on_change=None,
                place="",
                sources=first_sources(planned_sources(fragment, ids)),
            )
            marker = replace(first_marker(request, Incarnation("1-7"), {}, NOW), batch=BatchId(4))
            world.write(fragment.names.markers, encode_marker(marker))


def _is_used(found: Comparison, schema: str) -> bool:
    return bool(json.loads(found.document.schemas[SIGHTINGS]) == json.loads(schema))


def _unchanged(world: World, folder: Path) -> Document:
    return _document(world, folder)


def _after_a_stop(world: World, folder: Path) -> Document:
    stop(CARS, world.catalog)
    return _document(world, folder)


def _rolled_back(world: World, folder: Path) -> Document:
    _deploy(world, _document(world, folder, DOCUMENT.replace("speed > 0", "speed > 1")))
    network = world.catalog.networks.get(CARS)
    assert network is not None
    return document_of(network, NetworkVersion(1), world.catalog)


@pytest.mark.parametrize("again", [_unchanged, _after_a_stop])
@pytest.mark.parametrize(
    ("schema", "change"), [(WITH_LORRIES, "kind (gains lorry)"), (WIDER, "column speed of")]
)
def test_a_version_that_the_state_does_not_fit_is_not_adopted(
    tmp_path: Path, schema: str, change: str, again: Callable[[World, Path], Document]
) -> None:
    """The deployed schema is kept, with a warning that names the change and the choice."""
    world = _deployed(tmp_path)
    world.registry.register(SUBJECT, schema)
    found = _deploy(world, again(world, tmp_path))
    warning = next(one for one in found.changes.warnings if "the deployed schema is kept" in one)
    assert f"the state of counts does not fit the newest schema of {SUBJECT}" in warning
    assert change in warning
    assert "for moving, counts; " in warning
    assert "--state counts=rebuild" in warning
    assert not found.changes.new_version
    assert _is_used(found, SCHEMA)


def test_a_rollback_keeps_the_schemas_of_its_version(tmp_path: Path) -> None:
    """A version that producers registered since does not matter."""
    world = _deployed(tmp_path)
    document = _rolled_back(world, tmp_path)
    world.registry.register(SUBJECT, WITH_LORRIES)
    _deploy(world, document)


def test_a_symbol_that_fits_the_state_is_named(tmp_path: Path) -> None:
    """The newest version is adopted; the plan says what changes."""
    world = _deployed(tmp_path, SCHEMA.replace(', "default": "car"', ""))
    world.registry.register(SUBJECT, WITH_LORRIES.replace(', "default": "car"', ""))
    found = _compare(world, _document(world, tmp_path))
    (counts,) = (item for item in found.changes.fragments if item.name == COUNTS)
    assert counts.fate is Fate.KEPT
    assert any("kind (gains lorry)" in reason for reason in counts.reasons)


def test_a_symbol_is_named_beside_a_new_column(tmp_path: Path) -> None:
    """Of a fragment that passes all columns on."""
    plain = SCHEMA.replace(', "default": "car"', "")
    world = _deployed(tmp_path, plain)
    noted = '{"name": "note", "type": ["null", "string"], "default": null},\n  {"name": "speed"'
    newest = WITH_LORRIES.replace(', "default": "car"', "").replace('{"name": "speed"', noted)
    world.registry.register(SUBJECT, newest)
    found = _compare(world, _document(world, tmp_path))
    (moving,) = (item for item in found.changes.fragments if item.name == "moving")
    assert any("note" in reason for reason in moving.reasons)
    assert any("kind (gains lorry)" in reason for reason in moving.reasons)
    _deploy(world, _document(world, tmp_path))
    network = world.catalog.networks.get(CARS)
    assert network is not None
    items = difference(network, NetworkVersion(1), NetworkVersion(2), world.catalog).items
    (shown,) = (item for item in items if item.name == "moving")
    assert any("kind (gains lorry)" in reason for reason in shown.reasons)


def test_a_choice_for_the_state_adopts_the_newest_version(tmp_path: Path) -> None:
    """Named or for every fragment."""
    world = _deployed(tmp_path)
    world.registry.register(SUBJECT, WITH_LORRIES)
    for choices in (Choices(OnChange.REBUILD), Choices(None, {COUNTS: OnChange.EMPTY})):
        found = _compare(world, _document(world, tmp_path), choices)
        found.check()
        assert found.changes.warnings == ()
        assert _is_used(found, WITH_LORRIES)


TOTALS = """\
  totals: {aggregate: moving, window: 1m, by: [kind], compute: {n: count(*)}}
outputs:
"""


def test_a_choice_for_one_of_several_states_adopts_nothing(tmp_path: Path) -> None:
    """It would lose a state for nothing: the deploy is refused and names the other one."""
    document = DOCUMENT.replace("outputs:\n", TOTALS)
    world = _deployed(tmp_path, document=document)
    world.registry.register(SUBJECT, WITH_LORRIES)
    (warning,) = _compare(world, _document(world, tmp_path, document)).changes.warnings
    assert "`--state counts=rebuild --state totals=rebuild`" in warning
    choices = Choices(None, {COUNTS: OnChange.EMPTY})
    found = _compare(world, _document(world, tmp_path, document), choices)
    with pytest.raises(DeployError, match="fragment totals has run, and its state does not fit"):
        found.check()


@pytest.mark.parametrize("fragment", ["totals", "moving"])
def test_a_choice_for_another_reason_adopts_nothing(tmp_path: Path, fragment: str) -> None:
    """A window that was changed, or records that are lost, need their choice in any case."""
    before = DOCUMENT.replace("outputs:\n", TOTALS)
    world = _deployed(tmp_path, document=before)
    world.registry.register(SUBJECT, WITH_LORRIES)
    after = before.replace("window: 1m", "window: 2m") if fragment == "totals" else before
    choices = Choices(None, {FragmentName(fragment): OnChange.EMPTY})
    found = _compare(world, _document(world, tmp_path, after), choices)
    assert not undecided_fragments(found.changes)
    assert any("the state of counts" in warning for warning in found.changes.warnings)
    assert _is_used(found, SCHEMA)


def test_a_rollback_to_an_older_schema_asks_for_a_choice(tmp_path: Path) -> None:
    """The schemas of a deployed version are not the newest: none of them is replaced."""
    world = _deployed(tmp_path)
    network = world.catalog.networks.get(CARS)
    assert network is not None
    first = document_of(network, NetworkVersion(1), world.catalog)
    world.registry.register(SUBJECT, WITH_LORRIES)
    found = _compare(world, _document(world, tmp_path), Choices(OnChange.REBUILD))
    deploy(found, world.servers, lambda _: None)
    _runs(world, found)
    with pytest.raises(DeployError, match=r"kind \(loses lorry\)"):
        _compare(world, first).check()


def test_what_has_read_nothing_adopts_the_newest_version(tmp_path: Path) -> None:
    """There is no state that could not fit it."""
    world = World.new()
    world.registry.register(SUBJECT, SCHEMA)
    _deploy(world, _document(world, tmp_path))
    world.registry.register(SUBJECT, WITH_LORRIES)
    found = _deploy(world, _document(world, tmp_path))
    assert found.changes.warnings == ()
    assert _is_used(found, WITH_LORRIES)


def test_a_document_that_does_not_fit_with_any_schema_is_refused(tmp_path: Path) -> None:
    """It is refused for both reasons, and both are named."""
    world = _deployed(tmp_path)
    world.registry.register(SUBJECT, WITH_LORRIES)
    document = _document(world, tmp_path, DOCUMENT.replace("window: 10s", "window: 20s"))
    with pytest.raises(DeployError) as raised:
        _compare(world, document).check()
    assert "window" in str(raised.value)
    assert "kind (gains lorry)" in str(raised.value)


def test_a_document_that_needs_the_newest_version_is_refused(tmp_path: Path) -> None:
    """It reads a column that the deployed schema lacks; the state needs a choice."""
    world = _deployed(tmp_path)
    place = '{"name": "place", "type": "string", "default": ""},\n  {"name": "seen_at"'
    world.registry.register(SUBJECT, WITH_LORRIES.replace('{"name": "seen_at"', place))
    document = _document(world, tmp_path, DOCUMENT.replace("speed > 0", "place <> 'here'"))
    found = _compare(world, document)
    assert {item.name for item in found.changes.items if item.fate is Fate.UNDECIDED} == {COUNTS}
    with pytest.raises(DeployError, match=r"kind \(gains lorry\)"):
        found.check()


def test_a_lost_symbol_is_named(tmp_path: Path) -> None:
    """A state that has counted records with it fits the deployed schema only."""
    world = _deployed(tmp_path, SCHEMA.replace(', "default": "car"', ""))
    elsewhere = World.new()
    elsewhere.registry.register(SUBJECT, WITHOUT_BUSES)
    world.registry = elsewhere.registry
    found = _deploy(world, _document(world, tmp_path))
    assert "gone: bus, symbols of the enum Kind of" in found.changes.warnings[-1]

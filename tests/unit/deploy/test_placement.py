"""Deploys of placements."""

from dataclasses import replace
from pathlib import Path

from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.ids import NetworkId, NetworkName, NetworkVersion, ParticipantId
from pipeline.planner.changes import Action
from tests.unit.deploy.twins import DOCUMENT, World, write_project

US = ParticipantId("us")
CARS = NetworkId(US, NetworkName("cars"))


def compared(world: World, folder: Path, document: str = DOCUMENT) -> Comparison:
    """A document beside what is deployed."""
    return compare(
        read_document(write_project(folder, document), lambda _: None), US, world.servers
    )


def deployed(world: World, folder: Path, document: str = DOCUMENT) -> Deployed:
    """Deploy a document."""
    return deploy(compared(world, folder, document), world.servers, lambda _: None)


def test_another_placement_is_a_new_version_and_restarts_nothing(tmp_path: Path) -> None:
    """The records have the nodes; `plan` shows what changes, and warns of labels that none has."""
    world = World.new()
    deployed(world, tmp_path)
    placed = DOCUMENT + "placement: {nodes: zone=a, apart: [moving, stopped]}\n"
    found = compared(world, tmp_path, placed).changes
    moves = "if its node is none of these and another one is, it moves"
    assert [(one.action, one.reasons) for one in found.fragments] == [
        (
            Action.KEEP,
            (
                f"changed: nodes `any` → `zone=a`; {moves}",
                f"changed: apart from `none` → `{other}`",
            ),
        )
        for other in ("stopped", "moving")
    ]
    assert "no node that is up has zone=a: moving, stopped cannot be claimed" in found.warnings[0]
    assert deployed(world, tmp_path, placed).name == "cars@2"
    records = {one.fragment: one for one in world.catalog.fragments.of(CARS)}
    assert {one.version for one in records.values()} == {1}
    assert {name: (one.nodes, one.apart) for name, one in records.items()} == {
        "moving": ("zone=a", ("stopped",)),
        "stopped": ("zone=a", ("moving",)),
    }
    assert not deployed(world, tmp_path, placed).changed


def test_a_record_without_a_cost_gets_one_with_the_next_change(tmp_path: Path) -> None:
    """An upgrade of this program is no reason for a new version."""
    world = World.new()
    deployed(world, tmp_path)
    before = world.catalog.networks.get(CARS)
    version = world.catalog.versions.get(CARS, NetworkVersion(1))
    records = world.catalog.fragments.of(CARS)
    assert before is not None
    assert version is not None
    assert {one.cost_us for one in records} == {5}
    earlier = tuple(replace(one, cost_us=0) for one in records)
    second = replace(before, version=NetworkVersion(2))
    of_second = replace(version, version=NetworkVersion(2))
    world.catalog.networks.deploy(second, of_second, earlier, NetworkVersion(1), records)
    assert not deployed(world, tmp_path).changed

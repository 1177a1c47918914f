"""Deploys of placements."""

import json
from dataclasses import replace
from pathlib import Path

from brokers.versioned_store import Set
from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.ids import (
    FragmentName,
    NetworkId,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
)
from pipeline.names import Znodes
from pipeline.planner.changes import Action
from tests.unit.cli.reports import NODE
from tests.unit.deploy.twins import DOCUMENT, NOW, World, write_project

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
    assert [(one.action, one.reasons) for one in found.fragments] == [
        (
            Action.KEEP,
            (
                "changed: nodes `any` → `zone=a`",
                f"changed: apart from `none` → `{other}`",
            ),
        )
        for other in ("stopped", "moving")
    ]
    assert "no node that is up has zone=a: no node claims" in found.warnings[0]
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


def test_a_network_of_an_earlier_version_is_deployed_with_a_change(tmp_path: Path) -> None:
    """Its records lack the fields of the placement, which is no change of theirs."""
    world = World.new()
    deployed(world, tmp_path)
    for record in world.catalog.fragments.of(CARS):
        path = Znodes("").fragment(CARS, record.fragment)
        found = world.catalog.store.get(path)
        assert found is not None
        plain = json.loads(found.value)
        for name in ("nodes", "apart", "cost_us"):
            del plain[name]
        world.catalog.store.apply((Set(path, json.dumps(plain).encode(), found.version),))
    changed = DOCUMENT.replace("speed > 0", "speed > 5")
    assert deployed(world, tmp_path, changed).name == "cars@2"
    assert {one.cost_us for one in world.catalog.fragments.of(CARS)} == {5}


def test_a_deploy_announces_what_moves(tmp_path: Path) -> None:
    """From a node without the labels to one that has them; and asks about it."""
    world = World.new()
    deployed(world, tmp_path)
    here = replace(NODE, participant=US)
    there = replace(here, node=NodeId("n2"), labels=(("zone", "a"),))
    world.catalog.nodes.register(here)
    world.catalog.owners.claim(CARS, FragmentName("moving"), here, NOW)
    placed = DOCUMENT + "placement: {nodes: zone=a}\n"
    assert compared(world, tmp_path, placed).changes.disturbing == ()
    world.catalog.nodes.register(there)
    found = compared(world, tmp_path, placed).changes
    assert (found.disturbing, found.restarts) == (("moving",), 1)
    (moving,) = (one for one in found.fragments if one.name == "moving")
    assert moving.reasons[-1] == (
        "it moves from node n1: it stops there, and starts on another node"
    )
    world.catalog.drains.drain(US, there.node, NOW)
    assert compared(world, tmp_path, placed).changes.disturbing == ()


def test_fragments_that_only_drained_nodes_may_run_are_announced(tmp_path: Path) -> None:
    """By labels, or since all nodes are drained; one that is open is enough."""
    world = World.new()
    deployed(world, tmp_path)
    placed = DOCUMENT + "placement: {nodes: zone=a}\n"
    here = replace(NODE, participant=US, labels=(("zone", "a"),))
    world.catalog.nodes.register(here)
    world.catalog.drains.drain(US, here.node, NOW)
    warning = "all nodes that are up and may run {} are drained: they run there until another"
    for document in (DOCUMENT, placed):
        (found,) = compared(world, tmp_path, document).changes.warnings
        assert found.startswith(warning.format("moving, stopped"))
    world.catalog.nodes.register(replace(NODE, node=NodeId("b"), participant=US))
    assert compared(world, tmp_path, DOCUMENT).changes.warnings == ()
    (found,) = compared(world, tmp_path, placed).changes.warnings
    assert found.startswith(warning.format("moving, stopped"))

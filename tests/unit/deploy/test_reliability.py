"""Deploys of reliabilities."""

import json
from dataclasses import replace
from pathlib import Path

from brokers.versioned_store import Set
from pipeline.ids import NodeId
from pipeline.names import Znodes
from pipeline.planner.changes import Action
from pipeline.reliability import AMNESIA, with_passive_standbys
from tests.unit.catalog.support import node
from tests.unit.deploy.test_placement import CARS, US, compared, deployed
from tests.unit.deploy.twins import DOCUMENT, World

FOLLOWED = DOCUMENT + "reliability: {mode: active_standby, secondaries: 2}\n"


def standbys(world: World) -> dict[str, tuple[int, int]]:
    """The version, and the number of followers, of each fragment's record."""
    records = world.catalog.fragments.of(CARS)
    return {str(one.fragment): (one.version, one.active_standbys) for one in records}


def test_another_reliability_is_a_new_version_and_restarts_nothing(tmp_path: Path) -> None:
    """The records have the number of followers; `plan` shows what changes."""
    world = World.new()
    deployed(world, tmp_path)
    assert standbys(world) == {"moving": (1, 0), "stopped": (1, 0)}
    found = compared(world, tmp_path, FOLLOWED).changes
    change = "changed: reliability `upstream_backup` → `active_standby, 2 secondaries`"
    assert [(one.action, one.reasons) for one in found.fragments] == [(Action.KEEP, (change,))] * 2
    assert (found.restarts, found.disturbing) == (0, ())
    assert deployed(world, tmp_path, FOLLOWED).name == "cars@2"
    assert standbys(world) == {"moving": (1, 2), "stopped": (1, 2)}
    assert not deployed(world, tmp_path, FOLLOWED).changed
    assert not compared(world, tmp_path, FOLLOWED).changes.pending
    assert deployed(world, tmp_path).name == "cars@3"
    assert standbys(world) == {"moving": (1, 0), "stopped": (1, 0)}


def test_passive_standbys_are_recorded_and_restart_nothing(tmp_path: Path) -> None:
    """Their number, and how often the checkpoint is copied; another interval is another version."""
    world = World.new()
    passive = DOCUMENT + "reliability: {mode: passive_standby, checkpoint_every: 5s}\n"
    deployed(world, tmp_path)
    deployed(world, tmp_path, passive)
    found = world.catalog.fragments.of(CARS)
    assert {one.reliability for one in found} == {with_passive_standbys(1, 5_000)}
    assert standbys(world) == {"moving": (1, 0), "stopped": (1, 0)}
    assert not compared(world, tmp_path, passive).changes.pending
    changes = compared(world, tmp_path, passive.replace("5s", "6s")).changes
    assert changes.pending
    assert (changes.restarts, changes.disturbing) == (0, ())


def test_the_default_written_out_changes_nothing(tmp_path: Path) -> None:
    """It is the same plan."""
    world = World.new()
    deployed(world, tmp_path)
    assert not deployed(world, tmp_path, DOCUMENT + "reliability: upstream_backup\n").changed


def test_records_of_an_earlier_version_get_the_number_with_a_deploy(tmp_path: Path) -> None:
    """An earlier `pause` or `resume` forgets it; the next deploy notices that."""
    world = World.new()
    deployed(world, tmp_path, FOLLOWED)
    for record in world.catalog.fragments.of(CARS):
        path = Znodes("").fragment(CARS, record.fragment)
        found = world.catalog.store.get(path)
        assert found is not None
        plain = json.loads(found.value)
        del plain["active_standbys"]
        world.catalog.store.apply((Set(path, json.dumps(plain).encode(), found.version),))
    assert deployed(world, tmp_path, FOLLOWED).name == "cars@2"
    assert standbys(world) == {"moving": (1, 2), "stopped": (1, 2)}


def test_secondaries_that_no_node_can_be_are_announced(tmp_path: Path) -> None:
    """The deploy goes on: a node may come later."""
    world = World.new()
    deployed(world, tmp_path)
    assert compared(world, tmp_path, FOLLOWED).changes.warnings == ()
    for name in ("a", "b"):
        world.catalog.nodes.register(replace(node(NodeId(name)), participant=US))
    (warning,) = compared(world, tmp_path, FOLLOWED).changes.warnings
    assert warning == (
        "moving, stopped with active_standby, 2 secondaries: 3 nodes that may run it are needed, 2 "
        "are up, and not drained; until more are, it has fewer secondaries"
    )
    one = FOLLOWED.replace("secondaries: 2", "secondaries: 1")
    assert compared(world, tmp_path, one).changes.warnings == ()


def test_amnesia_is_recorded_and_restarts_nothing(tmp_path: Path) -> None:
    """A lane that starts reads it; the records of other modes say that it is not."""
    world = World.new()
    deployed(world, tmp_path)
    assert not any(one.amnesia for one in world.catalog.fragments.of(CARS))
    forgetful = DOCUMENT + "reliability: amnesia\n"
    found = compared(world, tmp_path, forgetful).changes
    assert {one.action for one in found.fragments} == {Action.KEEP}
    deployed(world, tmp_path, forgetful)
    records = world.catalog.fragments.of(CARS)
    assert {(one.version, one.reliability) for one in records} == {(1, AMNESIA)}
    assert not compared(world, tmp_path, forgetful).changes.pending
    assert {one.without_placement for one in records} == {
        replace(one, amnesia=False).without_placement for one in records
    }
    deployed(world, tmp_path, FOLLOWED)
    assert not any(one.amnesia for one in world.catalog.fragments.of(CARS))

"""Deploys of priorities, and what they say if the nodes have too little room."""

from dataclasses import replace
from pathlib import Path

from pipeline.deploy.pause import pause
from pipeline.ids import FragmentName, NetworkName, NodeId
from pipeline.planner.changes import Action
from pipeline.priority import Priority
from tests.unit.catalog.support import node
from tests.unit.deploy.test_placement import CARS, US, compared, deployed
from tests.unit.deploy.twins import DOCUMENT, NOW, World

LOW = DOCUMENT + "priority: low\n"
OTHER = DOCUMENT.replace("network: cars", "network: other").replace("cars", "vans")
HINT = "raise `most_fragments` of a node, or start another one"


def test_another_priority_is_a_new_version_and_restarts_nothing(tmp_path: Path) -> None:
    """The records have it; `plan` shows what changes."""
    world = World.new()
    deployed(world, tmp_path)
    found = compared(world, tmp_path, LOW).changes
    change = "changed: priority `normal` → `low`"
    assert [(one.action, one.reasons) for one in found.fragments] == [(Action.KEEP, (change,))] * 2
    assert (found.restarts, found.disturbing) == (0, ())
    assert deployed(world, tmp_path, LOW).name == "cars@2"
    records = world.catalog.fragments.of(CARS)
    assert [(one.version, one.priority) for one in records] == [(1, Priority.LOW)] * 2
    assert not deployed(world, tmp_path, LOW).changed
    assert deployed(world, tmp_path).name == "cars@3"


def test_fragments_without_room_are_announced(tmp_path: Path) -> None:
    """With their priority; nodes without a limit, or none at all, have room."""
    world = World.new()
    assert compared(world, tmp_path).changes.warnings == ()
    deployed(world, tmp_path)
    here = replace(node(), participant=US, most_fragments=1)
    world.catalog.nodes.register(here)
    (warning,) = compared(world, tmp_path, LOW).changes.warnings
    assert warning == (
        "the nodes that are up, and not drained, have no room for stopped (priority low): queued "
        f"until one has; {HINT}"
    )
    world.catalog.nodes.register(replace(here, node=NodeId("b"), most_fragments=0))
    assert compared(world, tmp_path, LOW).changes.warnings == ()


def test_a_paused_fragment_needs_no_room(tmp_path: Path) -> None:
    """A deploy does not start it."""
    world = World.new()
    deployed(world, tmp_path)
    world.catalog.nodes.register(replace(node(), participant=US, most_fragments=1))
    assert len(compared(world, tmp_path).changes.warnings) == 1
    pause(CARS, FragmentName("stopped"), world.catalog)
    assert compared(world, tmp_path).changes.warnings == ()


def test_what_it_displaces_of_other_networks_is_announced(tmp_path: Path) -> None:
    """By its full name; not what was queued before."""
    world = World.new()
    here = replace(node(), participant=US, most_fragments=3)
    deployed(world, tmp_path)
    world.catalog.nodes.register(here)
    for name in ("moving", "stopped"):
        world.catalog.owners.claim(CARS, FragmentName(name), here, NOW)
    other = replace(CARS, name=NetworkName("other"))
    urgent = OTHER + "priority: high\n"
    (warning,) = compared(world, tmp_path / "other", urgent).changes.warnings
    assert f"have no room for {CARS}.moving (priority normal): queued" in warning
    deployed(world, tmp_path / "other", urgent)
    assert {one.network for one in world.catalog.fragments.of(other)} == {other}
    assert compared(world, tmp_path / "other", urgent).changes.warnings == ()
    (warning,) = compared(world, tmp_path, LOW).changes.warnings
    assert "have no room for moving (priority low): queued" in warning

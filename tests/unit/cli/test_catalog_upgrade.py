"""Upgrade of the catalog's format: on request, and only when every node can read it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.backup import read, restored
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord
from pipeline.errors import RefusedError
from pipeline.ids import NodeId, ParticipantId
from pipeline.names import Znodes
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import NOW, World, write_project

Caller = Callable[..., Any]
OLD = NodeRecord(NodeId("n1"), ParticipantId("local"), "host", 7, NOW, "0.1", reads=1)


@pytest.fixture
def world() -> World:
    """A catalog in the present format."""
    return World.new()


def of_tomorrow(world: World) -> World:
    """The same catalog for a program that supports a second format."""
    return replace(world, catalog=Catalog(world.store, Znodes(""), newest=2))


def test_a_catalog_in_the_newest_format_is_not_changed(medusa: Caller, world: World) -> None:
    """No confirmation is needed, and it is no error."""
    done = medusa("catalog", "upgrade", opener=opener(world))
    assert (done.code, done.out) == (
        0,
        "the catalog is in format 1, the newest that this version knows\n",
    )


def test_nodes_that_cannot_read_the_new_format_prevent_the_upgrade(
    medusa: Caller, world: World
) -> None:
    """They are named; without them a confirmation is required."""
    world.catalog.nodes.register(OLD)
    later = opener(of_tomorrow(world))
    refused = medusa("catalog", "upgrade", opener=later)
    assert refused.code == 65
    assert "n1 (Medusa 0.1 on host, reads up to format 1)" in refused.err
    assert medusa("catalog", "upgrade", "--yes", opener=later).err == refused.err
    world.catalog.nodes.register(replace(OLD, reads=2), replaces=OLD)
    unconfirmed = medusa("catalog", "upgrade", opener=later)
    assert unconfirmed.code == 65
    assert "from 1 to 2" in unconfirmed.err
    assert world.catalog.format.current() == 1
    raised = medusa("catalog", "upgrade", "--yes", "-o", "json", opener=later)
    assert (raised.code, raised.data["before"], raised.data["format"]) == (0, 1, 2)
    nodes = medusa("node", "list", "-o", "json", opener=later).data["nodes"]
    assert [(node["version"], node["reads"]) for node in nodes] == [("0.1", 2)]


def test_an_older_backup_is_restored_into_a_newer_catalog(medusa: Caller, world: World) -> None:
    """It can read older records, and keeps its format."""
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(world)).code == 0
    assert medusa("catalog", "backup", "old.json", opener=opener(world)).code == 0
    later = of_tomorrow(World.new())
    assert medusa("catalog", "upgrade", "--yes", opener=opener(later)).code == 0
    assert medusa("catalog", "restore", "old.json", "--yes", opener=opener(later)).code == 0
    assert later.catalog.format.current() == 2
    assert later.catalog.networks.of(ParticipantId("local")) == world.catalog.networks.of(
        ParticipantId("local")
    )


def test_a_newer_backup_is_not_restored_into_an_older_catalog(world: World) -> None:
    """Its nodes could not read it; also if the restoring program supports both formats."""
    later = of_tomorrow(World.new())
    later.catalog.format.raise_to_newest()
    backup = read(later.store, NOW)
    there = {p: found for p in backup.entries if (found := world.store.get(p)) is not None}
    with pytest.raises(RefusedError, match="in format 2, this one is in format 1") as caught:
        restored(backup, there, {}, 2)
    assert "medusa catalog upgrade" in caught.value.hint

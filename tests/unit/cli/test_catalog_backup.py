"""Backup and restore of the catalog: the content is restored, epochs never decrease."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brokers.versioned_store import Set
from pipeline.catalog.backup import STEP_BYTES, Backup, dumps, loads, read, restored, steps
from pipeline.catalog.codec import decode, encode
from pipeline.catalog.records import EpochRecord, NodeRecord, RevisionRecord
from pipeline.errors import RefusedError
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkName,
    NodeId,
    ParticipantId,
    ZnodePath,
)
from pipeline.markers.codec import encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.names import FragmentNames, Znodes
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project

Caller = Callable[..., Any]
ME, MOVING = ParticipantId("local"), FragmentName("moving")
CARS = NetworkId(ME, NetworkName("cars"))
NAMES = FragmentNames(FragmentId(CARS, MOVING))
ZNODES = Znodes("")
NOW = Millis(1_700_000_000_000)
FILE = "catalog.json"


@pytest.fixture
def world(medusa: Caller) -> World:
    """A network that a node runs."""
    found = World.new()
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(found)).code == 0
    node = NodeRecord(NodeId("n1"), ME, "host", 7, NOW, "1", reads=1)
    found.catalog.nodes.register(node)
    epoch = found.catalog.owners.claim(CARS, MOVING, node, NOW).epoch
    found.catalog.starts.record(CARS, MOVING, epoch)
    return found


def marker(epoch: int) -> bytes:
    """A commit marker of an epoch."""
    return encode_marker(
        CommitMarker(
            Epoch(epoch), Incarnation("a"), BatchId(1), {}, {}, {}, None, None, {},
            BatchId(1), None, Totals(), NOW, "digest",
        )
    )  # fmt: skip


def epoch_of(world: World) -> int:
    """The last epoch of the fragment."""
    path = ZNODES.epoch(CARS, MOVING)
    found = world.store.get(path)
    assert found is not None
    return decode(EpochRecord, found.value, path).epoch


def test_networks_and_schemas_are_restored(medusa: Caller, world: World) -> None:
    """Also that a fragment has run, but neither its owner nor its status."""
    made = medusa("catalog", "backup", FILE, "-o", "json", opener=opener(world))
    assert (made.code, made.data["networks"], made.data["schemas"]) == (0, ["local.cars"], 3)
    new = World.new()
    done = medusa("catalog", "restore", FILE, "--yes", "-o", "json", opener=opener(new))
    assert done.code == 0
    before, after = (replace(read(w.store, NOW), made_at_ms=NOW) for w in (world, new))
    revision = ZNODES.networks(ME)
    assert {**after.entries, revision: ""} == {**before.entries, revision: ""}
    assert new.catalog.networks.of(ME) == world.catalog.networks.of(ParticipantId("local"))
    assert new.catalog.fragments.of(CARS) == world.catalog.fragments.of(CARS)
    assert new.catalog.nodes.all() == ()
    assert new.catalog.owners.get(CARS, MOVING) is None
    assert new.catalog.starts.recorded(CARS, MOVING)
    assert new.catalog.networks.revision(ME) > world.catalog.networks.revision(
        ParticipantId("local")
    )


def test_epochs_are_not_restored_below_those_of_markers(medusa: Caller, world: World) -> None:
    """Otherwise the marker of a newer epoch would fence every lane."""
    assert medusa("catalog", "backup", FILE, opener=opener(world)).code == 0
    assert epoch_of(world) == 1
    new = World.new()
    new.write(NAMES.markers, marker(41))
    assert medusa("catalog", "restore", FILE, "--yes", opener=opener(new)).code == 0
    assert epoch_of(new) == 41


def test_restoring_is_idempotent_and_an_interrupted_restore_can_be_repeated(
    medusa: Caller, world: World
) -> None:
    """Existing records are kept."""
    backup = read(world.store, NOW)
    new = World.new()
    operations = restored(backup, {}, {})
    there = {p: f for p in backup.entries if (f := new.store.get(p)) is not None}
    new.store.apply(restored(backup, there, {})[: len(operations) // 2])
    Path(FILE).write_text(dumps(backup))
    assert medusa("catalog", "restore", FILE, "--yes", opener=opener(new)).code == 0
    assert new.catalog.fragments.of(CARS) == world.catalog.fragments.of(CARS)
    again = medusa("catalog", "restore", FILE, "--yes", "-o", "json", opener=opener(new))
    assert again.data["changed"] == 1, "the revision alone"


def test_a_catalog_with_other_content_is_refused(medusa: Caller, world: World) -> None:
    """The error names the paths."""
    assert medusa("catalog", "backup", FILE, opener=opener(world)).code == 0
    other = World.new()
    write_project(Path("other"), document=Path("network.yaml").read_text() + "# changed\n")
    deployed = medusa("deploy", "-f", "other/network.yaml", "--no-wait", opener=opener(other))
    assert deployed.code == 0
    before = read(other.store, NOW)
    refused = medusa("catalog", "restore", FILE, "--yes", opener=opener(other))
    assert refused.code != 0
    assert "/networks/cars/versions/00000001" in refused.err
    assert read(other.store, NOW) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain text", "no whole backup"),
        ('{"kind": "medusa-catalog", "format": 1}', "no whole backup"),
        ('{"kind": "x", "format": 1, "made_at_ms": 1, "entries": {}}', "no whole backup"),
        (
            '{"kind": "medusa-catalog", "format": 1, "made_at_ms": 1, "entries": {"/etc": "x"}}',
            "no whole backup",
        ),
        (
            '{"kind": "medusa-catalog", "format": 99, "made_at_ms": 1, "entries": {}}',
            "format 99, this one reads up to 1",
        ),
    ],
)
def test_a_file_that_is_no_backup_is_refused(medusa: Caller, text: str, message: str) -> None:
    """Before any connection is opened."""
    Path(FILE).write_text(text)
    refused = medusa("catalog", "restore", FILE, "--yes")
    assert refused.code != 0
    assert message in refused.err
    assert FILE in refused.err


def test_a_backup_of_a_newer_catalog_is_refused(world: World) -> None:
    """Its records could be misread."""
    backup = read(world.store, NOW)
    newer = json.dumps({**json.loads(backup.entries["/format"]), "format": 99})
    text = dumps(replace(backup, entries={**backup.entries, "/format": newer}))
    with pytest.raises(RefusedError, match="99"):
        loads(text, FILE)


def test_a_file_is_never_overwritten(medusa: Caller, world: World) -> None:
    """Not even an older backup."""
    Path(FILE).write_text("mine")
    refused = medusa("catalog", "backup", FILE, opener=opener(world))
    assert refused.code != 0
    assert "exists" in refused.err
    assert Path(FILE).read_text() == "mine"
    missing = medusa("catalog", "restore", "nowhere.json", "--yes", opener=opener(world))
    assert "nowhere.json" in missing.err
    assert missing.code != 0


def test_a_dry_run_restores_nothing(medusa: Caller, world: World) -> None:
    """It prints the content of the file."""
    assert medusa("catalog", "backup", FILE, opener=opener(world)).code == 0
    called = medusa("catalog", "restore", FILE, "--dry-run")
    assert (called.code, "1 network (local.cars)" in called.out) == (0, True)


def test_large_catalogs_are_restored_in_steps() -> None:
    """No step exceeds the bound, unless a single value does."""
    half = "x" * (STEP_BYTES // 2)
    entries = {ZnodePath("/format"): "{}", **{f"/registry/contents/{n}": half for n in range(5)}}
    sizes = [
        sum(len(o.value) for o in step if not isinstance(o, Set) and hasattr(o, "value"))
        for step in steps(restored(Backup(NOW, entries), {}, {}))
    ]
    assert len(sizes) == 3
    assert max(sizes) <= STEP_BYTES


def test_epochs_are_restored_before_their_fragments(world: World) -> None:
    """A running node may claim a fragment between two steps and must not get an older epoch."""
    paths = [o.path for o in restored(read(world.store, NOW), {}, {NAMES: Epoch(9)})]
    last = paths.index(ZNODES.epoch(CARS, MOVING))
    above = {ZNODES.participants(), ZNODES.participant(ME), ZNODES.epochs(ME)}
    assert set(paths[:last]) == above


def test_the_revision_is_raised_so_that_nodes_read_the_catalog(world: World) -> None:
    """Also above that of the target catalog."""
    backup = read(world.store, NOW)
    found = world.store.get(ZNODES.networks(ME))
    assert found is not None
    high = replace(found, value=encode(RevisionRecord(90)))
    (operation,) = [
        o
        for o in restored(backup, {ZNODES.networks(ME): high}, {})
        if o.path == ZNODES.networks(ME)
    ]
    assert isinstance(operation, Set)
    assert decode(RevisionRecord, operation.value, "").revision == 91

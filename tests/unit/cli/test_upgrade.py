from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.catalog.backup import read
from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import NodeRecord
from pipeline.cli.session import Opener
from pipeline.deploy.documents import replan
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentName,
    Incarnation,
    NetworkId,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
)
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import encode_marker
from pipeline.planner.digest import state_digest
from pipeline.planner.state import OnChange
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import DOCUMENT, NOW, World, write_project

Caller = Callable[..., Any]
CARS, LOCAL = NetworkId(ParticipantId("local"), NetworkName("cars")), ParticipantId("local")
NODE = NodeRecord(NodeId("n1"), LOCAL, "host", 1, NOW, "0", reads=1)
COUNTS = FragmentName("counts")
WINDOWS = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  counts: {aggregate: sightings, window: 10s, by: [car], compute: {n: count(*)}}
"""
SHORTER = WINDOWS.replace("10s", "5s")


def _deployed(medusa: Caller, world: World, document: str = DOCUMENT) -> Opener:
    write_project(Path(), document)
    connect = opener(world)
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    return connect


def _has_run(world: World, state: str = "") -> None:
    """Write a commit marker of a run whose windows have a state."""
    version = world.catalog.versions.get(CARS, NetworkVersion(1))
    assert version is not None
    (fragment,) = replan(version).fragments
    made = state or state_digest(fragment)
    wanted = StartRequest(Epoch(1), made, stateful=True, on_change=None, place="")
    marker = first_marker(wanted, Incarnation("1-7"), {}, NOW)
    world.write(fragment.names.markers, encode_marker(replace(marker, batch=BatchId(4))))


def _report(world: World, fragment: str, state: LaneState, error: str = "") -> None:
    name = FragmentName(fragment)
    if world.catalog.nodes.get(ParticipantId("local"), NODE.node) is None:
        world.catalog.nodes.register(NODE)
    epoch = world.catalog.owners.claim(CARS, name, NODE, NOW).epoch
    status = replace(NOTHING_READ, network=CARS, fragment=name, node=NODE.node, epoch=epoch)
    world.catalog.statuses.report(replace(status, state=state, last_error=error))


def test_plan_and_deploy_refuse_a_state_that_does_not_fit(medusa: Caller) -> None:
    """65 with both choices in the message; nothing is changed."""
    world = World.new()
    connect = _deployed(medusa, world, WINDOWS)
    _has_run(world)
    write_project(Path(), SHORTER)
    for verb in ("plan", "deploy"):
        called = medusa(verb, opener=connect)
        assert called.code == 65
        assert "its state does not fit the new plan" in called.err
        assert "rebuild: computed again from what the input topics still hold" in called.err
        assert "empty: what was read before counts in no later result" in called.err
        assert "--state counts=rebuild" in called.err
    assert [f.version for f in world.catalog.fragments.of(CARS)] == [1]


def test_a_choice_is_shown_confirmed_and_stored_for_the_lane(medusa: Caller) -> None:
    """`plan` shows it, `deploy` requires --yes, and the catalog contains it."""
    world = World.new()
    connect = _deployed(medusa, world, WINDOWS)
    _has_run(world)
    write_project(Path(), SHORTER)
    shown = medusa("plan", "--state", "rebuild", "-o", "json", opener=connect)
    assert shown.data["fragments"][0]["state"] == "rebuild"
    unconfirmed = medusa("deploy", "--state", "counts=empty", opener=connect)
    assert unconfirmed.code == 65
    assert "its state begins empty" in unconfirmed.err
    called = medusa("deploy", "--state", "cars.counts=empty", "--yes", "--no-wait", opener=connect)
    assert called.out.startswith("cars@2")
    (record,) = world.catalog.fragments.of(CARS)
    assert record.choice == (OnChange.EMPTY, "1-7")


def test_a_state_of_another_version_is_refused_with_a_hint(medusa: Caller) -> None:
    """Digests in different formats cannot be compared."""
    world = World.new()
    connect = _deployed(medusa, world, WINDOWS)
    _has_run(world, state="2:abc")
    write_project(Path(), SHORTER)
    before = read(world.store, NOW)
    for verb in ("plan", "deploy"):
        called = medusa(verb, opener=connect)
        assert called.code == 65
        assert "another version of Medusa made its state" in called.err
        assert "let a node of this version start the fragment as it is deployed" in called.err
    assert read(world.store, NOW) == before
    shown = medusa("plan", "--state", "rebuild", "-o", "json", opener=connect)
    assert shown.data["fragments"][0]["state"] == "rebuild"


def test_an_unknown_choice_is_a_usage_error(medusa: Caller) -> None:
    """64, with the possible values."""
    write_project(Path())
    called = medusa("plan", "--state", "keep", opener=opener(World.new()))
    assert called.code == 64
    assert "rebuild or empty" in called.err


def test_deploy_ignores_reports_of_the_old_plan(medusa: Caller) -> None:
    """Neither a failure nor a run with the old plan ends the wait."""
    world = World.new()
    connect = _deployed(medusa, world)
    _report(world, "moving", LaneState.FAILED, "boom")
    _report(world, "stopped", LaneState.RUNNING)
    write_project(Path(), DOCUMENT.replace("speed > 0", "speed > 9"))
    called = medusa("deploy", "--yes", "--timeout", "0.3", opener=connect)
    assert called.code == 75
    assert "cars.moving: pending" in called.err
    _report(world, "moving", LaneState.RUNNING)
    assert medusa("deploy", opener=connect).code == 0


def test_history_and_rollback(medusa: Caller) -> None:
    """Versions with their changes; a rollback is a new version with an old document."""
    world = World.new()
    connect = _deployed(medusa, world)
    write_project(Path(), DOCUMENT.replace("speed > 0", "speed > 9"))
    assert medusa("deploy", "--no-wait", "--yes", opener=connect).code == 0
    dry = medusa("rollback", "cars", "--to", "1", "--dry-run", opener=connect)
    assert "`speed > 9` → `speed > 0`" in dry.out
    assert medusa("rollback", "cars", "--to", "1", "--no-wait", opener=connect).code == 65
    back = medusa("rollback", "cars", "--to", "1", "--no-wait", "--yes", opener=connect)
    assert back.out.startswith("cars@3 deployed")
    found = medusa("history", "cars", "-o", "json", opener=connect).data["versions"]
    assert [(v["version"], v["deployed"], v["changed"]) for v in found] == [
        (3, True, "changed moving"),
        (2, False, "changed moving"),
        (1, False, "the first version"),
    ]
    assert found[0]["digest"] == found[2]["digest"]
    shown = medusa("history", "cars", "-n", "1", opener=connect).out
    assert "deployed" in shown
    assert "the first version" not in shown
    missing = medusa("rollback", "cars", "--to", "9", opener=connect)
    assert missing.code == 65
    assert "medusa history cars" in missing.err


def test_rollback_requires_a_choice_as_deploy_does(medusa: Caller) -> None:
    """The state of the newer version does not fit the older one."""
    world = World.new()
    connect = _deployed(medusa, world, SHORTER)
    write_project(Path(), WINDOWS)
    assert medusa("deploy", "--no-wait", "--yes", opener=connect).code == 0
    version = world.catalog.versions.get(CARS, NetworkVersion(2))
    assert version is not None
    (fragment,) = replan(version).fragments
    wanted = StartRequest(Epoch(1), state_digest(fragment), stateful=True, on_change=None, place="")
    marker = replace(first_marker(wanted, Incarnation("1-7"), {}, NOW), batch=BatchId(4))
    world.write(fragment.names.markers, encode_marker(marker))
    refused = medusa("rollback", "cars", "--to", "1", "--yes", opener=connect)
    assert refused.code == 65
    assert "does not fit" in refused.err
    done = medusa(
        "rollback", "cars", "--to", "1", "--yes", "--no-wait", "--state", "rebuild", opener=connect
    )
    assert done.out.startswith("cars@3")


def test_pause_and_resume(medusa: Caller) -> None:
    """Both are idempotent; status shows `paused`; a deploy does not wait for paused fragments."""
    world = World.new()
    connect = _deployed(medusa, world)
    assert medusa("pause", "cars.moving", opener=connect).out == "cars.moving is paused\n"
    assert "nothing changed" in medusa("pause", "cars.moving", opener=connect).out
    states = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert [f["state"] for f in states] == ["paused", "pending"]
    _report(world, "stopped", LaneState.RUNNING)
    assert "nothing changed" in medusa("deploy", opener=connect).out
    assert "it is paused and stays so" in medusa("plan", opener=connect).out
    assert medusa("resume", "cars", opener=connect).out == "cars goes on\n"
    assert "nothing changed" in medusa("resume", "cars.moving", opener=connect).out
    assert medusa("pause", "cars.nobody", opener=connect).code == 65
    assert medusa("pause", "nobody", opener=connect).code == 65


def test_pause_waits_until_the_fragment_is_stopped(medusa: Caller) -> None:
    """75 while a node still runs it; other fragments are not awaited."""
    world = World.new()
    connect = _deployed(medusa, world)
    _report(world, "moving", LaneState.RUNNING)
    _report(world, "stopped", LaneState.RUNNING)
    called = medusa("pause", "cars.moving", "--timeout", "0.3", opener=connect)
    assert called.code == 75
    assert "cars.moving" in called.err or "moving" in called.err
    states = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert [f["state"] for f in states] == ["stopping", "running"]
    _report(world, "moving", LaneState.STOPPED)
    assert medusa("pause", "cars.moving", opener=connect).code == 0


def test_undeploy_ends_a_pause(medusa: Caller) -> None:
    """The fragments of a stopped network start with the next deploy; resume is refused."""
    world = World.new()
    connect = _deployed(medusa, world)
    assert medusa("pause", "cars", opener=connect).code == 0
    assert medusa("undeploy", "cars", opener=connect).out == "cars is stopped\n"
    refused = medusa("resume", "cars", opener=connect)
    assert refused.code == 65
    assert "`medusa deploy`" in refused.err
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    states = medusa("status", "-o", "json", opener=connect).data["fragments"]
    assert {f["desired"] for f in states} == {"running"}

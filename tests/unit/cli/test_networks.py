from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.statuses import Statuses
from pipeline.clock import Clock
from pipeline.deploy.pause import pause
from pipeline.errors import UnavailableError
from pipeline.ids import (
    FragmentName,
    NetworkId,
    NetworkVersion,
    NodeId,
    ParticipantId,
)
from pipeline.settings import Settings
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.cli.reports import CARS, NODE, Caller, deployed, report
from tests.unit.cli.twins import opener
from tests.unit.deploy.test_python_files import CARS as IN_PYTHON
from tests.unit.deploy.twins import DOCUMENT, NOW, SCHEMA, World, write_project


def test_show_and_explain_need_no_server(medusa: Caller) -> None:
    """Both read only the document."""
    write_project(Path())
    shown = medusa("show")
    assert shown.code == 0
    assert "[moving-cars]" in shown.out
    assert medusa("explain").out.startswith("network cars of local: 2 fragments")
    assert medusa("explain", "-o", "json").data["fragments"][0]["output"] == "moving-cars"


def test_a_description_in_python_is_deployed_as_its_document(medusa: Caller) -> None:
    """The catalog contains YAML; the same network in Python or YAML is no change."""
    world = World.new()
    connect = opener(world)
    Path("sighting.avsc").write_text(SCHEMA)
    Path("network.py").write_text(IN_PYTHON)
    assert medusa("plan", "--detailed-exitcode", opener=connect).code == 2
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    assert "nothing changed" in medusa("deploy", "--no-wait", opener=connect).out
    version = world.catalog.versions.get(CARS, NetworkVersion(1))
    assert version is not None
    Path("same.yaml").write_text(version.document)
    assert "nothing changed" in medusa("deploy", "--no-wait", "-f", "same.yaml", opener=connect).out


def test_the_exit_code_of_plan_shows_pending_changes(medusa: Caller) -> None:
    """2 with --detailed-exitcode if there are changes, 0 after the deploy, 0 without the option."""
    world = World.new()
    write_project(Path())
    connect = opener(world)
    assert medusa("plan", opener=connect).code == 0
    pending = medusa("plan", "--detailed-exitcode", "-o", "json", opener=connect)
    assert pending.code == 2
    assert pending.data["pending"] is True
    assert not world.kafka.topics
    deployed(medusa, world)
    assert medusa("plan", "--detailed-exitcode", opener=connect).code == 0


def test_a_mistyped_input_topic_is_refused_before_it_is_created(medusa: Caller) -> None:
    """`plan` and `deploy` name the missing topic and a similar one that exists."""
    world = World.new()
    write_project(Path(), DOCUMENT.replace("topic: car-sightings", "topic: car-sigthings"))
    world.kafka.add("car-sightings")
    connect = opener(world)
    meant = "warning: input topic car-sigthings does not exist: did you mean car-sightings?"
    planned = medusa("plan", opener=connect)
    assert meant in planned.out
    assert "an input that does not exist yet" in planned.out
    deployed = medusa("deploy", "--no-wait", opener=connect)
    assert meant in deployed.err
    assert "input topic car-sigthings does not exist: creating it too" in deployed.err


def test_plan_prints_every_reason_against_a_deploy(medusa: Caller) -> None:
    """A plan that cannot be deployed ends with 65."""
    world = World.new()
    write_project(Path())
    world.kafka.add("moving-cars", records=3)
    called = medusa("plan", "-o", "json", opener=opener(world))
    assert called.code == 65
    assert called.data["error"]["code"] == "not-deployable"
    assert "moving-cars" in called.data["error"]["problems"][0]["message"]


def test_all_mistakes_of_a_document_are_printed(medusa: Caller) -> None:
    """One pass, every mistake with its line, exit code 65."""
    write_project(
        Path(),
        DOCUMENT.replace("speed > 0", "spede > 0").replace("filter: sightings, where: speed = 0",
                                                           "filter: sighting, where: speed = 0"),
    )  # fmt: skip
    called = medusa("plan", opener=opener(World.new()))
    assert called.code == 65
    assert "network.yaml:5" in called.err
    assert "network.yaml:6" in called.err


def test_a_second_deploy_changes_nothing(medusa: Caller) -> None:
    """The id is the same, and the output states it."""
    world = World.new()
    connect = deployed(medusa, world)
    again = medusa("deploy", "--no-wait", opener=connect)
    assert again.code == 0
    assert again.out == "cars@1 is deployed already; nothing changed\n"


def test_dry_run_deploys_nothing(medusa: Caller) -> None:
    """It prints the output of plan."""
    world = World.new()
    write_project(Path())
    called = medusa("deploy", "--dry-run", opener=opener(world))
    assert called.code == 0
    assert "moving-cars" in called.out
    assert not world.kafka.topics


def test_deploy_waits_until_all_fragments_run(medusa: Caller) -> None:
    """It ends when the last one reports that it runs."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    report(world, "stopped", LaneState.RUNNING)
    called = medusa("deploy", "-o", "json", opener=connect)
    assert called.code == 0
    assert [f["state"] for f in called.data["fragments"]] == ["running", "running"]


def test_deploy_without_a_node_ends_with_a_timeout(medusa: Caller) -> None:
    """The wait has a limit: 75, and a hint that no node is up."""
    write_project(Path())
    called = medusa("deploy", "--timeout", "0.3", opener=opener(World.new()))
    assert called.code == 75
    assert "no node is up" in called.err


def test_an_interrupted_deploy_prints_its_state(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the write into the catalog: deploy again. After it: the nodes go on."""
    world = World.new()
    write_project(Path())
    connect = opener(world)

    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(world.kafka, "create_topics", cut_off)
        called = medusa("deploy", opener=connect)
        assert called.code == 130
        assert "run it again" in called.err
        assert world.catalog.networks.of(ParticipantId("local")) == ()
    monkeypatch.setattr(Statuses, "of", cut_off)
    called = medusa("deploy", opener=connect)
    assert called.code == 130
    assert "cars@1 is deployed and goes on starting" in called.err


def test_deploy_ends_when_a_fragment_failed_for_good(medusa: Caller) -> None:
    """Its error is printed at once instead of after the timeout."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.FAILED, "no such column")
    called = medusa("deploy", opener=connect)
    assert called.code == 3
    assert "cars.moving failed: no such column" in called.err
    assert "medusa logs cars.moving" in called.err


def test_deploy_ignores_reports_of_earlier_runs(medusa: Caller) -> None:
    """The end of an earlier run of a fragment is no result of the new one."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.FAILED, "no such column")
    assert medusa("undeploy", "cars", opener=connect).code == 0
    called = medusa("deploy", "--timeout", "0.3", opener=connect)
    assert called.code == 75
    assert "no such column" not in called.err


def test_deploy_waits_for_the_first_records_of_started_fragments(
    medusa: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A running fragment may fail at its first record."""
    world = World.new()
    write_project(Path())
    reported, read = iter([LaneState.RUNNING, LaneState.FAILED]), Statuses.of

    def looked_at(statuses: Statuses, *networks: NetworkId) -> tuple[FragmentStatus, ...]:
        report(world, "moving", next(reported), "no such column", lag=3)
        report(world, "stopped", LaneState.RUNNING, lag=0)
        return read(statuses, *networks)

    monkeypatch.setattr(Statuses, "of", looked_at)
    called = medusa("deploy", opener=opener(world))
    assert called.code == 3
    assert "cars.moving: running" in called.err
    assert "cars.moving failed: no such column" in called.err


@pytest.mark.parametrize("state", [LaneState.WAITING, LaneState.RESTARTING])
def test_deploy_prints_why_a_fragment_does_not_run_yet(medusa: Caller, state: LaneState) -> None:
    """It may still start, so the deploy goes on waiting, and users see the reason."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", state, "Kafka does not allow this to us")
    called = medusa("deploy", "--timeout", "0.3", opener=connect)
    assert called.code == 75
    assert f"cars.moving: {state.value}: Kafka does not allow this to us" in called.err


def test_replacing_a_fragment_requires_a_confirmation(medusa: Caller) -> None:
    """Without a terminal --yes is required; otherwise nothing changes."""
    world = World.new()
    connect = deployed(medusa, world)
    write_project(Path(), DOCUMENT.replace("speed > 0", "speed > 9"))
    called = medusa("deploy", "--no-wait", opener=connect)
    assert called.code == 65
    assert "--yes" in called.err
    assert medusa("deploy", "--no-wait", "--yes", opener=connect).out.startswith("cars@2")


def test_undeploy_and_destroy(medusa: Caller) -> None:
    """Undeploy keeps all; destroy requires --yes and prints what is deleted and what is kept."""
    world = World.new()
    connect = deployed(medusa, world)
    assert medusa("undeploy", "cars", opener=connect).out == "cars is stopped\n"
    assert "nothing changed" in medusa("undeploy", "cars", opener=connect).out
    dry = medusa("destroy", "cars", "--dry-run", "-o", "json", opener=connect)
    assert "moving-cars" in dry.data["removed_topics"]
    assert dry.data["kept_topics"] == ["car-sightings"]
    assert medusa("destroy", "cars", opener=connect).code == 65
    assert world.catalog.networks.get(CARS) is not None
    checkpoints = Path(".medusa/checkpoints/local/cars/moving")
    checkpoints.mkdir(parents=True)
    assert medusa("destroy", "cars", "--yes", opener=connect).code == 0
    assert world.catalog.networks.get(CARS) is None
    assert not checkpoints.exists()
    assert set(world.kafka.topics) == {"car-sightings", "local.medusa-events"}


def test_a_server_that_is_down_names_medusa_up(medusa: Caller) -> None:
    """69, with the hint `medusa up`."""
    write_project(Path())

    def connect(_settings: Settings, _clock: Clock) -> Any:
        class Down:
            """No server answers."""

            @property
            def servers(self) -> None:
                raise UnavailableError("no answer", place="ZooKeeper")

            def close(self) -> None:
                """No resources to release."""

        return Down()

    called = medusa("plan", opener=connect)
    assert called.code == 69
    assert "`medusa up`" in called.err


def test_node_list(medusa: Caller) -> None:
    """Every node with the fragments that it owns."""
    world = World.new()
    connect = deployed(medusa, world)
    report(world, "moving", LaneState.RUNNING)
    nodes = medusa("node", "list", "-o", "json", opener=connect).data["nodes"]
    assert [(n["node"], n["fragments"]) for n in nodes] == [("n1", ["cars.moving"])]
    assert "n1" in medusa("node", "list", opener=connect).out


def test_node_list_has_limits_and_how_many_fragments_run(medusa: Caller) -> None:
    """What is paused does not."""
    world = World.new()
    connect = deployed(medusa, world)
    world.catalog.nodes.register(replace(NODE, most_fragments=2))
    world.catalog.nodes.register(replace(NODE, node=NodeId("n2")))
    for name in ("moving", "stopped"):
        world.catalog.owners.claim(CARS, FragmentName(name), NODE, NOW)
    pause(CARS, FragmentName("stopped"), world.catalog)
    nodes = medusa("node", "list", "-o", "json", opener=connect).data["nodes"]
    assert [(n["node"], n["running"], n["most_fragments"]) for n in nodes] == [
        ("n1", 1, 2),
        ("n2", 0, None),
    ]
    assert "1 of 2" in medusa("node", "list", opener=connect).out


def test_a_deploy_names_what_no_node_has_room_for(medusa: Caller) -> None:
    """It warns before, and does not wait for it; `status` has it, too."""
    world = World.new()
    connect = deployed(medusa, world)
    here = replace(NODE, most_fragments=1)
    world.catalog.nodes.register(here)
    document = Path("network.yaml")
    document.write_text(document.read_text(encoding="utf-8") + "priority: low\n", encoding="utf-8")
    epoch = world.catalog.owners.claim(CARS, FragmentName("moving"), here, NOW).epoch
    running = replace(NOTHING_READ, network=CARS, fragment=FragmentName("moving"), node=NODE.node)
    running = replace(running, epoch=epoch, state=LaneState.RUNNING, lag_records=0)
    world.catalog.statuses.report(running)
    called = medusa("deploy", opener=connect)
    assert called.code == 0
    assert "warning: the nodes that are up, and not drained, have no room for " in called.err
    assert "cars.stopped: queued: no node has room (priority low)" in called.err
    assert "queued, since no node has room: stopped" in called.out
    assert "no node has room (priority low)" in medusa("status", opener=connect).out
    shown = medusa("status", "-o", "json", opener=connect).data["fragments"]
    (queued,) = (one for one in shown if one["fragment"] == "stopped")
    assert (queued["state"], queued["priority"], queued["node"]) == ("queued", "low", None)
    assert queued["unplaced"] == "no node has room (priority low)"


def test_schema_verbs(medusa: Caller) -> None:
    """Check, register twice, list, show; an incompatible schema is refused with path and types."""
    connect = opener(World.new())
    write_project(Path())
    assert medusa("schema", "check", "sighting.avsc").code == 0
    first = medusa("schema", "register", "s-value", "sighting.avsc", "-o", "json", opener=connect)
    again = medusa("schema", "register", "s-value", "sighting.avsc", "-o", "json", opener=connect)
    assert (first.data["changed"], again.data["changed"]) == (True, False)
    assert first.data["id"] == again.data["id"]
    listed = medusa("schema", "list", "-o", "json", opener=connect).data["subjects"]
    expected = {"subject": "s-value", "version": 1, "id": first.data["id"], "type": "AVRO"}
    assert listed == [expected]
    none = medusa("schema", "list", "zzz", opener=connect)
    assert (none.code, none.out, none.err) == (0, "", "no subject begins with zzz\n")
    shown = medusa("schema", "show", str(first.data["id"]), "-o", "json", opener=connect)
    assert shown.data["schema"]["name"] == "Sighting"
    Path("bad.avsc").write_text(SCHEMA.replace('"double"', '"string"'), encoding="utf-8")
    refused = medusa("schema", "check", "bad.avsc", "--subject", "s-value", opener=connect)
    assert refused.code == 65
    assert "speed" in refused.err
    assert "double" in refused.err
    assert medusa("schema", "register", "s-value", "bad.avsc", opener=connect).code == 65
    assert medusa("schema", "show", "nobody", opener=connect).code == 65


def test_a_schema_that_does_not_parse_names_file_and_path(medusa: Caller) -> None:
    """65, without any server."""
    Path("broken.avsc").write_text('{"type": "record", "name": "A"}', encoding="utf-8")
    called = medusa("schema", "check", "broken.avsc")
    assert called.code == 65
    assert "broken.avsc" in called.err

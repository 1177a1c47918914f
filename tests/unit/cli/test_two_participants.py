"""Commands of two participants that use one network name on the same servers."""

from pathlib import Path

from pipeline.catalog.records import DesiredState
from pipeline.ids import NetworkId, NetworkName, ParticipantId
from tests.unit.cli.conftest import Caller
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import World, write_project

OURS, THEIRS = (NetworkId(ParticipantId(one), NetworkName("cars")) for one in ("local", "them"))
THEM = "--set=participant=them"
DOCUMENT = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
"""


def test_commands_act_for_the_participant_of_the_settings(medusa: Caller) -> None:
    """Deploy, status, pause, plan and destroy; the network of the other one is unchanged."""
    world = World.new()
    connect = opener(world)
    write_project(Path(), DOCUMENT)
    assert "no network is deployed" in medusa("status", THEM, opener=connect).err
    assert medusa("deploy", "--no-wait", opener=connect).code == 0
    assert "not deployed yet" in medusa("plan", THEM, opener=connect).out
    assert medusa("deploy", "--no-wait", THEM, opener=connect).code == 0
    for more in ((), (THEM,)):
        shown = medusa("status", "-o", "json", *more, opener=connect)
        assert [one["network"] for one in shown.data["fragments"]] == ["cars"]

    assert medusa("pause", "cars", "--no-wait", THEM, opener=connect).code == 0
    wanted = {n: [f.desired for f in world.catalog.fragments.of(n)] for n in (OURS, THEIRS)}
    assert wanted == {OURS: [DesiredState.RUNNING], THEIRS: [DesiredState.PAUSED]}

    gone = medusa("destroy", "cars", "--yes", "-o", "json", opener=connect).data
    assert gone["removed_groups"] == ["local.cars.moving"]
    assert {topic.partition(".")[0] for topic in gone["removed_topics"]} == {"local"}
    assert medusa("get", "cars", opener=connect).code == 65
    assert medusa("get", "cars", THEM, opener=connect).code == 0
    assert {"them.cars.moving", "them.cars.moving.markers"} <= set(world.kafka.topics)

"""Deploys of availability bounds, beside what was measured of the waits for the same inputs."""

from dataclasses import replace
from pathlib import Path

from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.ids import FragmentName, NetworkId, NetworkName, TopicName
from tests.unit.catalog.support import NOTHING_READ, node
from tests.unit.deploy.test_placement import CARS, US, compared, deployed
from tests.unit.deploy.twins import NOW, World

COUNTS = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  counts: {aggregate: sightings, by: [car], window: 10s, compute: {n: count(*)}}
outputs:
  counts: {topic: car-counts}
"""
OTHER = COUNTS.replace("network: cars", "network: vans").replace("car-counts", "van-counts")
VANS = NetworkId(US, NetworkName("vans"))
SLOW = UsualWaits(84, 2_600, 7_100)


def measured(world: World, waits: UsualWaits | None, network: NetworkId = CARS) -> None:
    """The running fragment has reported its waits."""
    name = FragmentName("counts")
    here = replace(node(), participant=US)
    world.catalog.nodes.register(here)
    epoch = world.catalog.owners.claim(network, name, here, NOW).epoch
    found = replace(NOTHING_READ, network=network, fragment=name, node=here.node, epoch=epoch)
    world.catalog.statuses.report(replace(found, waits=waits))


def warnings(world: World, folder: Path, availability: str) -> tuple[str, ...]:
    """What a deploy with a bound warns of."""
    found = compared(world, folder, COUNTS + f"availability: {availability}\n").changes.warnings
    return tuple(one for one in found if "usually waits" in one)


def test_a_bound_below_what_is_usual_is_a_warning_with_the_numbers(tmp_path: Path) -> None:
    """Of the running version of the network, which has no bound yet."""
    world = World.new()
    deployed(world, tmp_path, COUNTS)
    measured(world, SLOW)
    (warning,) = warnings(world, tmp_path, "3s")
    assert warning == (
        "counts has availability 3s, so it publishes tentative results after 2s 200ms; but "
        f"{CARS}.counts usually waits up to 2s 600ms for the last partition of the same input (in "
        "95 % of 84 minutes no longer, 7s 100ms at most): results would be tentative without a "
        "failure; write 8s or more"
    )
    assert warnings(world, tmp_path, "8s") == ()
    assert warnings(world, tmp_path, "{bound: 3s, policy: suspend}") == ()


def test_other_readers_of_the_same_input_count(tmp_path: Path) -> None:
    """The slowest of them; one that reads other topics, too, may wait for those."""
    world = World.new()
    deployed(world, tmp_path, OTHER)
    measured(world, SLOW, VANS)
    (warning,) = warnings(world, tmp_path, "3s")
    assert f"{VANS}.counts usually waits up to 2s 600ms" in warning
    others = "  others: {topic: others, schema: sighting.avsc, event_time: seen_at}\n"
    both = "boxes:\n  both: {union: [sightings, others]}\n"
    more = OTHER.replace("boxes:\n", others + both)
    deployed(world, tmp_path, more.replace("aggregate: sightings", "aggregate: both"))
    measured(world, SLOW, VANS)
    assert warnings(world, tmp_path, "3s") == ()


def test_without_a_measurement_nothing_is_said(tmp_path: Path) -> None:
    """Nor if nothing runs, or what was measured is fast."""
    world = World.new()
    assert warnings(world, tmp_path, "1ms") == ()
    deployed(world, tmp_path, COUNTS)
    assert warnings(world, tmp_path, "1ms") == ()
    measured(world, None)
    assert warnings(world, tmp_path, "1ms") == ()
    measured(world, replace(SLOW, usual_ms=900))
    assert warnings(world, tmp_path, "2s") == ()


def test_the_record_has_whether_a_fragment_may_have_tentative_results(tmp_path: Path) -> None:
    """So `status` knows it of one that does not run."""
    world = World.new()
    deployed(world, tmp_path, COUNTS)
    assert [one.may_be_tentative for one in world.catalog.fragments.of(CARS)] == [False]
    deployed(world, tmp_path, COUNTS + "availability: 3s\n")
    assert [one.may_be_tentative for one in world.catalog.fragments.of(CARS)] == [True]


def test_a_lost_topic_of_tentative_results_is_created_again(tmp_path: Path) -> None:
    """By the next deploy, also if nothing else has changed."""
    world, document = World.new(), COUNTS + "availability: 3s\n"
    deployed(world, tmp_path, document)
    name = TopicName("car-counts.tentative")
    del world.kafka.topics[name]
    deployed(world, tmp_path, document)
    assert name in world.kafka.topics

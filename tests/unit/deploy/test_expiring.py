"""Expiring records of fragments whose node does not report them."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.records import Begun
from pipeline.deploy import expiring
from pipeline.deploy.expiring import Search, needs_at_rest, reported_expiring
from pipeline.ids import (
    FragmentId,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkVersion,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.lanes.expiring import Cause, ExpiringRecords, Use
from pipeline.markers.codec import decode_marker, encode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames, value_subject
from pipeline.planner.inputs import InputFrom
from schemas.compatibility import Level
from tests.unit.catalog.support import NOTHING_READ, node
from tests.unit.deploy.test_inputs import FILTER, MOVING, NET, Scene
from tests.unit.deploy.twins import NOW

SIGHTINGS = TopicName("car-sightings")
EXPIRING = ExpiringRecords(SIGHTINGS, (0,), Use.UNREAD, Cause.REMOVED)
FRAGMENT = FragmentId(NET, MOVING)
DAY_S: Final = 86_400


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A fragment that has read five of nine records."""
    found = Scene(tmp_path)
    found.world.kafka.add(SIGHTINGS, partitions=1, records=9)
    found.deploy(FILTER)
    found.read(FILTER, {SIGHTINGS: 5})
    return found


def search(
    scene: Scene, within_s: float = 3.0, status: FragmentStatus | None = None
) -> dict[FragmentId, tuple[ExpiringRecords, ...]]:
    """The answer about the fragment."""
    world = scene.world
    of = Search(world.kafka, world.log, world.clock, within_s)
    return dict(of.of([(scene.record, status)], lambda network: life(scene, network)))


def life(scene: Scene, network: NetworkId) -> NetworkLife | None:
    """Of a network in the catalog."""
    found = scene.world.catalog.networks.get(network)
    return None if found is None else found.life


def marker(scene: Scene) -> CommitMarker:
    """The last one."""
    last = scene.world.log.last(FragmentNames(FRAGMENT).markers)
    assert last is not None
    assert last.value is not None
    return decode_marker(last.value, "")


def test_a_fragment_that_runs_nowhere_is_examined_by_its_marker(scene: Scene) -> None:
    """From half of the retention on, which is seven days."""
    assert search(scene) == {FRAGMENT: ()}
    scene.world.clock.sleep(3.4 * DAY_S)
    assert search(scene) == {FRAGMENT: ()}
    scene.world.clock.sleep(0.2 * DAY_S)
    ((found,),) = search(scene).values()
    assert (found.topic, found.partitions, found.use) == (SIGHTINGS, (0,), Use.UNREAD)
    scene.world.kafka.delete_records(SIGHTINGS, {0: Offset(6)})
    ((found,),) = search(scene).values()
    assert found.cause is Cause.REMOVED


def test_a_lost_fragment_ran_until_its_last_report(scene: Scene) -> None:
    """It had no batch for days; its state was kept all the same."""
    world = scene.world
    needed = {at: Offset(4) for at in marker(scene).end}
    end = {at: Offset(9) for at in needed}
    last = replace(marker(scene), end=end, needed=needed)
    world.write(FragmentNames(FRAGMENT).markers, encode_marker(last))
    world.clock.sleep(4 * DAY_S)
    status = replace(NOTHING_READ, reported_at_ms=world.clock.now_ms())
    ((found,),) = search(scene).values()
    assert (found.use, found.cause) == (Use.REBUILD, Cause.AGE)
    assert search(scene, status=status) == {FRAGMENT: ()}
    assert search(scene, status=replace(status, state=LaneState.FAILED)) == {FRAGMENT: (found,)}
    world.clock.sleep(2 * DAY_S)
    ((found,),) = search(scene, status=status).values()
    assert found.use is Use.REBUILD


def of_running(scene: Scene, within_s: float = 3.0) -> dict[FragmentId, list[Cause]]:
    """The answer about what a rebuild of the fragment needs."""
    world = scene.world
    found = Search(world.kafka, world.log, world.clock, within_s).of_running([scene.record])
    assert {one.use for every in found.values() for one in every} <= {Use.REBUILD}
    return {fragment: [one.cause for one in every] for fragment, every in found.items()}


def test_a_rebuild_of_a_running_fragment_is_examined_by_its_latest_markers(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event time keeps up with the clock for six and a half of seven days, and then stops."""
    monkeypatch.setattr(expiring, "MARKERS", 2)
    world, markers = scene.world, FragmentNames(FRAGMENT).markers
    needed = {at: Offset(4) for at in marker(scene).end}
    first = replace(marker(scene), needed=needed, eviction_ms=NOW)
    world.write(markers, encode_marker(first))
    assert of_running(scene) == {FRAGMENT: []}
    world.clock.sleep(6.5 * DAY_S)
    now_ms = world.clock.now_ms()
    world.write(markers, encode_marker(replace(first, eviction_ms=now_ms, written_at_ms=now_ms)))
    assert of_running(scene) == {FRAGMENT: []}
    world.clock.sleep(0.4 * DAY_S)
    assert of_running(scene) == {FRAGMENT: []}
    world.write(markers, encode_marker(replace(first, eviction_ms=now_ms, written_at_ms=now_ms)))
    assert of_running(scene) == {FRAGMENT: [Cause.AGE]}
    world.kafka.delete_records(SIGHTINGS, {0: Offset(5)})
    assert of_running(scene) == {FRAGMENT: [Cause.REMOVED]}
    assert of_running(scene, within_s=0.0) == {}
    world.kafka.delete_topics([markers])
    assert of_running(scene) == {}


def test_no_time_left_leaves_fragments_unexamined(scene: Scene) -> None:
    """They are asked for again later."""
    assert search(scene, within_s=0.0) == {}


def test_a_fragment_that_never_ran_needs_what_a_deploy_has_decided(scene: Scene) -> None:
    """Without such a decision it begins with what is there when it starts."""
    assert needs_at_rest(scene.record, NetworkLife("x"), None).topics == {}
    topic_id = dict(scene.record.topic_ids)[SIGHTINGS]
    ranges = ((0, Offset(2), Offset(9)),)
    begun = Begun(StreamName("sightings"), topic_id, ranges, False, False, NetworkVersion(1))
    record = replace(scene.record, begins=(begun,))
    needs = needs_at_rest(record, NetworkLife("x"), None)
    assert needs.topics[SIGHTINGS].unread == {0: 2}
    of_marker = needs_at_rest(record, life(scene, NET), marker(scene))
    assert of_marker.topics[SIGHTINGS].unread == {0: 5}
    gone = replace(record, begins=(begun._replace(topic_id="another"),))
    assert needs_at_rest(gone, None, None).topics == {}


def test_a_fragment_that_begins_anew_does_not_need_its_earlier_positions(tmp_path: Path) -> None:
    """Another fragment has written its output meanwhile."""
    scene, out = Scene(tmp_path), TopicName("moving-cars")
    moving = f"{FILTER}outputs: {{moving: {{topic: {out}}}}}\n"
    scene.world.kafka.add(SIGHTINGS, partitions=1, records=9)
    scene.deploy(moving)
    scene.read(moving, {SIGHTINGS: 5})
    scene.world.kafka.fill(out, 4)
    scene.world.registry.set_level(value_subject(out), Level.NONE)
    read = needs_at_rest(scene.record, life(scene, NET), marker(scene))
    assert read.topics[SIGHTINGS].unread == {0: 5}
    for document in (moving.replace("moving:", "driving:"), moving):
        scene.deploy(document, sightings=InputFrom.END)
    anew = needs_at_rest(scene.record, life(scene, NET), marker(scene))
    assert anew.topics[SIGHTINGS].unread == {0: 9}


@pytest.mark.parametrize(
    ("state", "expiring", "up", "expected"),
    [
        (LaneState.RUNNING, None, True, ()),
        (LaneState.RUNNING, (EXPIRING,), True, (EXPIRING,)),
        (LaneState.RUNNING, (EXPIRING,), False, None),
        (LaneState.FAILED, None, True, None),
        (LaneState.STOPPED, (), True, ()),
        (LaneState.STOPPED, (), False, None),
    ],
)
def test_the_report_of_a_node_that_is_up_counts(
    state: LaneState,
    expiring: tuple[ExpiringRecords, ...] | None,
    expected: tuple[ExpiringRecords, ...] | None,
    *,
    up: bool,
) -> None:
    """A running fragment without an answer is not behind."""
    status: FragmentStatus = replace(NOTHING_READ, state=state, expiring=expiring)
    one = node() if up else replace(node(), started_at_ms=Millis(NOW + 1))
    assert reported_expiring(status, [one]) == expected
    assert reported_expiring(None, [one]) is None

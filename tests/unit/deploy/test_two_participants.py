"""Two participants with one network name, in one catalog and one Kafka."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.versioned_store import VersionedStore
from pipeline.catalog import backup
from pipeline.catalog.records import DesiredState, NodeRecord
from pipeline.clock import Deadline
from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.pause import pause, resume
from pipeline.deploy.remove import deployed, destroy, doomed
from pipeline.errors import DeployError, RefusedError, UnavailableError
from pipeline.ids import (
    Epoch,
    FragmentName,
    NetworkId,
    NetworkName,
    NodeId,
    Offset,
    ParticipantId,
    TopicName,
)
from pipeline.names import Znodes
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.deploy.twins import NOW, World, write_project

US, THEM = ParticipantId("us"), ParticipantId("them")
OURS, THEIRS = (NetworkId(owner, NetworkName("cars")) for owner in (US, THEM))
MOVING = FragmentName("moving")
BY_DEFAULT = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
"""
CHOSEN = BY_DEFAULT + "outputs: {moving: {topic: moving-cars}}\n"


def _deploy(
    world: World, folder: Path, owner: ParticipantId, document: str = BY_DEFAULT
) -> Deployed:
    found = _compared(world, folder, owner, document)
    return deploy(found, world.servers, lambda _: None)


def _compared(
    world: World, folder: Path, owner: ParticipantId, document: str = CHOSEN
) -> Comparison:
    def read_subject(subject: str) -> str | None:
        found = world.registry.latest(subject)
        return None if found is None else found.text

    read = read_document(write_project(folder, document), read_subject)
    return compare(read, owner, world.servers)


def _below(store: VersionedStore, path: str) -> dict[str, bytes]:
    """All values at and below a path."""
    value = store.get(path)
    found = {} if value is None else {path: value.value}
    for name in store.children(path):
        found |= _below(store, f"{path.rstrip('/')}/{name}")
    return found


def _run(world: World, network: NetworkId) -> Epoch:
    """Claim the fragment for a node of the participant, and report; all nodes have one name."""
    node = NodeRecord(NodeId("n1"), network.participant, "host", 1, NOW, "0", reads=1)
    world.catalog.nodes.register(node)
    epoch = world.catalog.owners.claim(network, MOVING, node, NOW).epoch
    status = replace(NOTHING_READ, network=network, fragment=MOVING, node=node.node, epoch=epoch)
    world.catalog.statuses.report(status)
    world.catalog.starts.record(network, MOVING, epoch)
    return epoch


def _ids(world: World, begin: str) -> Mapping[str, str]:
    """The topics whose name begins with a prefix, with their ids."""
    return {n: one.topic_id for n, one in world.kafka.topics.items() if n.startswith(begin)}


@pytest.fixture
def both(tmp_path: Path) -> World:
    """Both have deployed and run one document without explicit names of topics."""
    world = World.new()
    for owner, network in ((US, OURS), (THEM, THEIRS)):
        assert _deploy(world, tmp_path / owner, owner).name == "cars@1"
        assert _run(world, network) == 1
    return world


def test_both_deploy_with_topics_of_their_own(both: World) -> None:
    """Both have the same set of topics; only the input is shared, which neither created."""
    ours, theirs = _ids(both, "us."), _ids(both, "them.")
    assert {name.removeprefix("us.") for name in ours} == {
        name.removeprefix("them.") for name in theirs
    }
    assert set(both.kafka.topics) == {*ours, *theirs, "car-sightings"}
    assert {"us.cars.moving-value", "them.cars.moving-value"} <= set(both.registry.subjects())
    for network, topics in ((OURS, ours), (THEIRS, theirs)):
        assert deployed(network, both.catalog).made_topics == tuple(sorted(topics))


def test_a_participant_changes_only_its_own_subtree(both: World) -> None:
    """The subtree of the other is unchanged, byte for byte, and so are the shared records."""
    before = _below(both.store, "/")
    pause(OURS, None, both.catalog)
    assert [one.desired for one in both.catalog.fragments.of(OURS)] == [DesiredState.PAUSED]
    assert [one.desired for one in both.catalog.fragments.of(THEIRS)] == [DesiredState.RUNNING]
    resume(OURS, None, both.catalog)
    assert _run(both, OURS) == 2
    changed = dict(_below(both.store, "/").items() - before.items())
    assert changed
    assert all(path.startswith(f"{Znodes('').participant(US)}/") for path in changed)


def test_destroying_one_does_not_touch_the_other(both: World) -> None:
    """Topics, groups, catalog records and counters of the other stay; it can deploy again."""
    theirs = _ids(both, "them."), _below(both.store, Znodes("").participant(THEM))
    before = both.catalog.snapshot(THEM)
    what = doomed(OURS, both.servers)
    assert set(what.topics) == set(_ids(both, "us."))
    assert what.groups == ("us.cars.moving",)
    both.store.expire()  # the nodes end, so there is nothing to wait for
    both.store.resume()
    destroy(what, both.servers, Deadline.after(both.clock, 5, "destroying"), lambda _: None)
    assert not _ids(both, "us.")
    assert "car-sightings" in both.kafka.topics
    with pytest.raises(RefusedError, match="network cars is not deployed"):
        deployed(OURS, both.catalog)
    assert _ids(both, "them.") == theirs[0]
    nodes = Znodes("").nodes(THEM)
    after = _below(both.store, Znodes("").participant(THEM))
    assert after == {p: v for p, v in theirs[1].items() if not p.startswith(f"{nodes}/")}
    assert both.catalog.snapshot(THEM).fragments == before.fragments
    assert both.catalog.snapshot(US).fragments == ()


def test_a_network_deployed_again_continues_its_own_epochs(both: World, tmp_path: Path) -> None:
    """Not those of the other, which has claimed more often since."""
    assert [_run(both, THEIRS) for _ in range(3)] == [2, 3, 4]
    both.store.expire()
    both.store.resume()
    what = doomed(OURS, both.servers)
    destroy(what, both.servers, Deadline.after(both.clock, 5, "destroying"), lambda _: None)
    assert _deploy(both, tmp_path / "again", US).name == "cars@1"
    assert _run(both, OURS) == 2


def test_a_topic_that_another_network_took_since_the_comparison_is_refused(tmp_path: Path) -> None:
    """Both are compared before either is deployed."""
    world = World.new()
    ours, theirs = (_compared(world, tmp_path / owner, owner) for owner in (US, THEM))
    deploy(ours, world.servers, lambda _: None)
    with pytest.raises(DeployError, match="topic moving-cars is the output of fragment moving"):
        deploy(theirs, world.servers, lambda _: None)
    assert world.catalog.networks.get(THEIRS) is None
    assert world.catalog.deploys.begun(THEIRS) == ()


def test_a_topic_of_another_network_is_never_that_of_an_interrupted_deploy(
    tmp_path: Path,
) -> None:
    """Both were about to create it, and the other one did; `destroy` would remove its results."""
    world = World.new()
    world.catalog.format.ensure(THEM)
    world.catalog.deploys.begin(THEIRS, (TopicName("moving-cars"),))
    _deploy(world, tmp_path / "us", US, CHOSEN)
    _deploy(world, tmp_path / "them", THEM, CHOSEN.replace("moving-cars", "their-cars"))
    network = world.catalog.networks.get(THEIRS)
    assert network is not None
    assert "moving-cars" not in network.made_topics


def test_an_input_that_an_interrupted_deploy_created_belongs_to_no_network(tmp_path: Path) -> None:
    """Another network may read it by then."""
    world = World.new()
    world.kafka.fail_after = 2
    with pytest.raises(UnavailableError):
        _deploy(world, tmp_path / "them", THEM)
    assert "car-sightings" in world.kafka.topics
    world.kafka.fail_after = None
    other = BY_DEFAULT.replace("car-sightings", "truck-sightings")
    _deploy(world, tmp_path / "them", THEM, other)
    network = world.catalog.networks.get(THEIRS)
    assert network is not None
    assert "car-sightings" not in network.made_topics


def test_the_second_network_with_one_output_topic_is_refused(tmp_path: Path) -> None:
    """Only one network of all participants may write a topic; nothing is created for the other."""
    world = World.new()
    _deploy(world, tmp_path / "us", US, CHOSEN)
    topics = set(world.kafka.topics)
    with pytest.raises(DeployError) as caught:
        _deploy(world, tmp_path / "them", THEM, CHOSEN)
    use = "topic moving-cars is the output of fragment moving of network cars of participant us"
    assert use in str(caught.value)
    assert set(world.kafka.topics) == topics
    assert world.catalog.networks.get(THEIRS) is None


def test_the_output_of_another_participant_can_be_read(tmp_path: Path) -> None:
    """By its topic; internal topics cannot be read."""
    world = World.new()
    _deploy(world, tmp_path / "us", US)
    reads = BY_DEFAULT.replace("car-sightings, schema: sighting.avsc", "{topic}")
    good = reads.replace("{topic}", "us.cars.moving, subject: us.cars.moving-value")
    assert _deploy(world, tmp_path / "them", THEM, good).changed
    inner = reads.replace("{topic}", "us.cars.moving.redrive, schema: sighting.avsc")
    with pytest.raises(DeployError, match=r"redrive topic of .* of participant us"):
        _deploy(world, tmp_path / "others", ParticipantId("others"), inner)


def test_a_backup_contains_both(both: World) -> None:
    """With their fragments and epochs, and without reports of running nodes."""
    found = backup.read(both.store, NOW)
    assert set(found.networks) == {OURS, THEIRS}
    assert {names.id.network for names in found.fragments} == {OURS, THEIRS}
    assert {path for path in found.entries if path.endswith("/cars.moving")} == {
        Znodes("").epoch(OURS, MOVING),
        Znodes("").epoch(THEIRS, MOVING),
    }
    for network in (OURS, THEIRS):
        assert Znodes("").owner(network, MOVING) not in found.entries
        assert Znodes("").node(network.participant, NodeId("n1")) not in found.entries


KEPT_BY_NEED = """\
network: cars
internal_retention: needed
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  counted: {aggregate: sightings, by: [car], window: 1m, compute: {n: count(*), at: max(seen_at)}}
  few: {filter: counted, where: n < 5}
  many: {filter: counted, where: n >= 5}
"""
READS_IT = """\
network: others
streams:
  counts: {topic: us.cars.counted, subject: us.cars.counted-value, event_time: window_end}
boxes:
  seen: {filter: counts, where: n > 0}
"""


def test_what_others_read_is_not_kept_by_need(tmp_path: Path) -> None:
    """In either order; fragments of other networks of the participant may read it."""
    world = World.new()
    _deploy(world, tmp_path / "us", US, KEPT_BY_NEED)
    with pytest.raises(DeployError, match="only what fragments of participant us need is kept"):
        _deploy(world, tmp_path / "them", THEM, READS_IT)
    _deploy(world, tmp_path / "us", US, READS_IT)

    world = World.new()
    _deploy(world, tmp_path / "us", US, KEPT_BY_NEED.replace("internal_retention: needed\n", ""))
    _deploy(world, tmp_path / "them", THEM, READS_IT)
    with pytest.raises(DeployError, match="counted is read by network others of part"):
        _deploy(world, tmp_path / "us", US, KEPT_BY_NEED)


def test_a_reader_is_told_that_it_begins_at_what_is_left(tmp_path: Path) -> None:
    """Here a fragment of another network."""
    world = World.new()
    _deploy(world, tmp_path / "us", US, KEPT_BY_NEED)
    topic = TopicName("us.cars.counted")
    world.kafka.fill(topic, 5)

    def warnings() -> tuple[str, ...]:
        return _compared(world, tmp_path / "us", US, READS_IT).changes.warnings

    assert not any("what is left" in warning for warning in warnings())
    world.kafka.delete_records(topic, {0: Offset(3)})
    (found,) = (warning for warning in warnings() if "what is left" in warning)
    assert found == (
        f"topic {topic} is kept by need, and records that no fragment needed are gone: seen begins "
        "at what is left"
    )

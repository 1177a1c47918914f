"""Redrive topics, which the first redrive creates."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brokers.records import NewTopicSpec
from brokers.versioned_store import Set
from pipeline.catalog.codec import encode
from pipeline.clock import Deadline
from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.redrive_topic import RedriveTopic
from pipeline.deploy.remove import destroy, doomed
from pipeline.errors import DeployError, RefusedError, RetryError, UnavailableError
from pipeline.ids import (
    FragmentId,
    FragmentName,
    Incarnation,
    NetworkId,
    NetworkName,
    ParticipantId,
    TopicName,
)
from pipeline.markers.codec import encode_marker
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames, Znodes
from pipeline.planner.state import OnChange
from tests.unit.deploy.twins import DOCUMENT, OtherConnection, World, write_project
from tests.unit.kafka import grow
from tests.unit.lanes.marked import marked
from tests.unit.spark.run.test_rebuild import MARKER

US, MOVING = ParticipantId("us"), FragmentName("moving")
CARS = NetworkId(US, NetworkName("cars"))
REDRIVE = FragmentNames(FragmentId(CARS, MOVING)).redrive


@dataclass
class Scene:
    """A deployed network of two fragments, and the redrive topic of one."""

    world: World
    folder: Path
    document: str = DOCUMENT

    def deploy(self) -> None:
        """Deploy the present document."""
        path = write_project(self.folder, self.document)
        found = compare(read_document(path, lambda _: None), US, self.world.servers)
        deploy(found, self.world.servers, lambda _: None)

    @property
    def redrive(self) -> RedriveTopic:
        """The redrive topic, as a new command creates it."""
        path = write_project(self.folder, self.document)
        plan = compare(read_document(path, lambda _: None), US, self.world.servers).plan
        fragment = next(one for one in plan.fragments if one.name == MOVING)
        world = self.world
        return RedriveTopic(plan, fragment, world.catalog, world.kafka, world.log)

    @property
    def recorded(self) -> dict[TopicName, str]:
        """The fragment's topic ids in the catalog."""
        record = self.world.catalog.fragments.get(CARS, MOVING)
        assert record is not None
        return dict(record.topic_ids)

    @property
    def made(self) -> bool:
        """Whether the network's record contains the topic as created by it."""
        network = self.world.catalog.networks.get(CARS)
        return network is not None and REDRIVE in network.made_topics

    def read(self, topic_id: str) -> None:
        """Commit a marker of a lane that has read a redrive topic."""
        stream, names = self.redrive.fragment.inputs[0], self.redrive.fragment.names
        at = InputPartition(stream.name, stream.topic, 0)
        data = {stream.topic: self.world.kafka.topics[stream.topic].topic_id}
        sources = marked({at: 5, replace(at, topic=REDRIVE): 1}, ids={**data, REDRIVE: topic_id})
        marker = replace(MARKER, start={}, end={}, needed={}, sources=sources)
        self.world.write(names.markers, encode_marker(marker))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A scene without any redrive."""
    found = Scene(World.new(), tmp_path)
    found.deploy()
    return found


def test_a_deploy_creates_none(scene: Scene) -> None:
    """And does not need one: no record was redriven."""
    assert not scene.redrive.is_there()
    assert REDRIVE not in scene.world.kafka.topics
    assert REDRIVE not in scene.recorded


def test_the_first_redrive_creates_and_records_it(scene: Scene) -> None:
    """With as many partitions as the widest input has; a second redrive changes nothing."""
    kafka = scene.world.kafka
    grow(kafka, "car-sightings", 9)
    kafka.defaults["message.timestamp.type"] = "LogAppendTime"
    scene.redrive.create()
    made = kafka.topics[REDRIVE]
    assert (len(made.partitions), made.config["message.timestamp.type"]) == (9, "CreateTime")
    assert scene.recorded[REDRIVE] == made.topic_id
    assert scene.made
    revision = scene.world.catalog.networks.revision(US)
    scene.redrive.create()
    assert scene.world.catalog.networks.revision(US) == revision
    assert scene.redrive.is_there()
    assert scene.world.catalog.deploys.begun(CARS) == ()


def test_it_has_unlimited_size_independent_of_the_brokers_default(scene: Scene) -> None:
    """Else redriven records could be deleted; the settings of an existing topic are checked."""
    kafka = scene.world.kafka
    kafka.defaults["retention.bytes"] = "1000"
    scene.redrive.create()
    config = kafka.topics[REDRIVE].config
    assert config["retention.bytes"] == "-1"
    config["retention.bytes"] = "1000"
    with pytest.raises(RefusedError, match=r"retention\.bytes=1000, the network needs -1"):
        scene.redrive.create()


def test_an_unchanged_deploy_does_not_change_it(scene: Scene) -> None:
    """No new version, no restart; the record of a changed network still contains it."""
    scene.redrive.create()
    revision, recorded = scene.world.catalog.networks.revision(US), scene.recorded
    scene.deploy()
    assert (scene.world.catalog.networks.revision(US), scene.recorded) == (revision, recorded)
    scene.document = DOCUMENT.replace("speed = 0", "speed < 1")
    scene.deploy()
    assert scene.recorded == recorded
    assert scene.made


def test_destroying_its_network_removes_it(scene: Scene) -> None:
    """As every topic that was created for the network."""
    scene.redrive.create()
    servers = scene.world.servers
    deadline = Deadline.after(scene.world.clock, 5, "destroying")
    gone = destroy(doomed(CARS, servers), servers, deadline, lambda _: None)
    assert REDRIVE in gone.topics
    assert REDRIVE not in scene.world.kafka.topics


def test_a_topic_created_by_others_does_not_change_a_choice(scene: Scene) -> None:
    """The fragment has not begun as chosen, although the topic exists."""
    chosen = OnChange.REBUILD, Incarnation("a")
    path = Znodes("").fragment(CARS, MOVING)
    found, record = scene.world.store.get(path), scene.world.catalog.fragments.get(CARS, MOVING)
    assert found is not None
    assert record is not None
    scene.world.store.apply((Set(path, encode(replace(record, choice=chosen)), found.version),))
    scene.world.kafka.add(REDRIVE)
    scene.deploy()
    assert REDRIVE in scene.recorded
    now = scene.world.catalog.fragments.get(CARS, MOVING)
    assert now is not None
    assert (now.choice, now.version) == (chosen, record.version)


class CutOff(OtherConnection):
    """A Kafka that creates a topic and does not answer."""

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create the topics, and fail."""
        self.kafka.create_topics(topics)
        raise UnavailableError("Kafka does not answer")


@pytest.mark.parametrize("again", ["redrive", "deploy"])
def test_the_topic_of_an_interrupted_redrive_is_the_networks(scene: Scene, again: str) -> None:
    """The next redrive, or deploy, finds it and records it as created by the network."""
    kafka = scene.world.kafka
    with pytest.raises(UnavailableError):
        replace(scene.redrive, topics=CutOff(kafka)).create()
    assert REDRIVE in kafka.topics
    assert REDRIVE not in scene.recorded
    if again == "redrive":
        scene.redrive.create()
    else:
        scene.deploy()
    assert scene.recorded[REDRIVE] == kafka.topics[REDRIVE].topic_id
    assert scene.made
    assert scene.world.catalog.deploys.begun(CARS) == ()


class Meanwhile(OtherConnection):
    """A Kafka in which a concurrent redrive is faster."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene.world.kafka)
        self._scene = scene

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """The other redrive creates the topic, records it in the catalog, and sends records."""
        self._scene.redrive.create()
        self.kafka.fill(REDRIVE, 3)
        return self.kafka.create_topics(topics)


def test_one_of_two_concurrent_redrives_creates_it(scene: Scene) -> None:
    """Both continue with the same topic, which belongs to the network."""
    replace(scene.redrive, topics=Meanwhile(scene)).create()
    assert scene.recorded[REDRIVE] == scene.world.kafka.topics[REDRIVE].topic_id
    assert set(scene.world.kafka.end_offsets((REDRIVE,))[REDRIVE].values()) == {3}
    assert scene.made
    assert scene.world.catalog.deploys.begun(CARS) == ()


def test_without_auto_create_the_error_describes_the_required_topic(tmp_path: Path) -> None:
    """Once the user has created it, it is used; destroy keeps it."""
    scene = Scene(World.new(), tmp_path)
    scene.deploy()
    scene.document = DOCUMENT.replace("streams:", "auto_create: false\nstreams:")
    with pytest.raises(RefusedError, match="auto_create is false: it needs 4 partitions") as caught:
        scene.redrive.create()
    assert caught.value.place == f"topic {REDRIVE}"
    assert REDRIVE not in scene.world.kafka.topics
    scene.world.kafka.add(REDRIVE, partitions=2)
    scene.redrive.create()
    assert scene.recorded[REDRIVE] == scene.world.kafka.topics[REDRIVE].topic_id
    assert not scene.made


def test_an_existing_topic_with_unsuitable_settings_is_not_used(scene: Scene) -> None:
    """With the broker's timestamps, redriven records would have other event times."""
    scene.world.kafka.add(REDRIVE)
    scene.world.kafka.topics[REDRIVE].config["message.timestamp.type"] = "LogAppendTime"
    with pytest.raises(RefusedError, match="type=LogAppendTime, the network needs CreateTime"):
        scene.redrive.create()
    assert REDRIVE not in scene.recorded


@pytest.mark.parametrize("by", ["catalog", "marker"])
@pytest.mark.parametrize("remade", [False, True])
def test_a_missing_or_recreated_topic_is_refused(scene: Scene, by: str, *, remade: bool) -> None:
    """Else redriven records would be sent twice, and read from positions of the old topic.

    The catalog may have been restored from a state without the topic; then the marker contains it.
    """
    if by == "catalog":
        scene.redrive.create()
        del scene.world.kafka.topics[REDRIVE]
    scene.read("id-77")
    if remade:
        scene.world.kafka.add(REDRIVE)
    what = "was deleted and made again" if remade else "is gone"
    for verb in (scene.redrive.is_there, scene.redrive.create):
        with pytest.raises(RefusedError, match=what):
            verb()
    with pytest.raises(DeployError, match=r"cars\.moving\.redrive"):
        scene.deploy()


@pytest.mark.parametrize("by", ["redrive", "deploy"])
@pytest.mark.parametrize("auto_create", [False, True])
def test_it_is_added_to_a_restored_catalog_again(
    tmp_path: Path, by: str, *, auto_create: bool
) -> None:
    """By the next redrive, or a deploy; the lane has continued to read it.

    It belongs to a network that creates its topics. Else records of this life would exist in
    the next one.
    """
    scene = Scene(World.new(), tmp_path)
    scene.deploy()
    if not auto_create:
        scene.document = DOCUMENT.replace("streams:", "auto_create: false\nstreams:")
    scene.world.kafka.add(REDRIVE)
    topic_id = scene.world.kafka.topics[REDRIVE].topic_id
    scene.read(topic_id)
    assert scene.redrive.is_there()
    if by == "redrive":
        scene.redrive.create()
    else:
        scene.deploy()
    assert scene.recorded[REDRIVE] == topic_id
    assert scene.made is auto_create
    scene.redrive.create()
    assert scene.made is auto_create


def test_a_topic_that_is_deleted_at_once_is_an_error(scene: Scene) -> None:
    """No record is sent."""

    class Vanishing(OtherConnection):
        def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
            return tuple(topic.name for topic in topics)

    with pytest.raises(RetryError, match="gone again"):
        replace(scene.redrive, topics=Vanishing(scene.world.kafka)).create()

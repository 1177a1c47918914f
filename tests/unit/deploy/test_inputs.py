"""Changed inputs: choices that a plan requires, and decisions that a deploy records."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.catalog.records import Begun, FragmentRecord
from pipeline.deploy.apply import Comparison, Deployed, compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.inputs import Inputs
from pipeline.errors import DeployError, RetryError
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentName,
    Incarnation,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    StreamName,
    TopicName,
)
from pipeline.lanes.source_ids import carry, first_sources, planned_sources
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.codec import decode_marker, encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.deploys import DeployId
from pipeline.markers.positions import InputPartition
from pipeline.planner.changes import Action, Item
from pipeline.planner.digest import state_digest
from pipeline.planner.inputs import Fared, InputFrom, Ranges
from pipeline.planner.state import Choices, Fate, OnChange
from tests.unit.deploy.twins import NOW, World, write_project
from tests.unit.kafka import grow

US, MOVING = ParticipantId("us"), FragmentName("moving")
NET = NetworkId(US, NetworkName("cars"))
LIFE = Incarnation("1-7")
FILTER = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {filter: sightings, where: speed > 0}
"""
COUNTING = "aggregate: both, window: 10s, by: [car], compute: {n: count(*)}"
RENAMED = FILTER.replace("sightings: {t", "seen: {t").replace("r: sightings", "r: seen")
TWO = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
  more: {topic: more-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  both: {union: [sightings, more]}
  moving: {filter: both, where: speed > 0}
"""
COUNTS = """\
network: cars
streams:
  sightings: {topic: car-sightings, schema: sighting.avsc, event_time: seen_at}
boxes:
  moving: {aggregate: sightings, window: 10s, by: [car], compute: {n: count(*)}}
"""


class Scene:
    """A network that is deployed in steps, whose fragment `moving` reads all inputs."""

    def __init__(self, folder: Path) -> None:
        self.world, self._folder = World.new(), folder

    def compare(self, document: str, choices: Choices | None = None) -> Comparison:
        """Compare a document with the deployed state."""
        path = write_project(self._folder, document)
        found = read_document(path, lambda _: None)
        return compare(found, US, self.world.servers, choices or Choices())

    def deploy(self, document: str, **inputs: InputFrom) -> Deployed:
        """Deploy a document."""
        chosen = {StreamName(name): choice for name, choice in inputs.items()}
        found = self.compare(document, Choices(inputs=chosen))
        return deploy(found, self.world.servers, lambda _: None)

    def read(
        self, document: str, ends: Mapping[str, int], records_in: int = 5, **fields: Any
    ) -> None:
        """Commit a marker of the deployed version's lane; `ends` by topic, partition 0."""
        self.read_as(self.record, document, ends, records_in, **fields)

    def read_as(
        self,
        record: FragmentRecord,
        document: str,
        ends: Mapping[str, int],
        records_in: int = 5,
        *,
        anew: str = "",
        output: str = "",
    ) -> None:
        """Commit a marker of a lane that was started for this record."""
        (fragment,) = (f for f in self.compare(document).plan.fragments if f.name == MOVING)
        planned = planned_sources(fragment, dict(record.topic_ids))
        record_before = self.world.log.last(fragment.names.markers)
        last = None if record_before is None else record_before.value
        sources = first_sources(planned)
        if last is not None:
            sources = carry(decode_marker(last, ""), planned).marker.sources
        topics = {stream.topic: stream.name for stream in fragment.inputs}
        positions = {
            InputPartition(topics[TopicName(topic)], TopicName(topic), 0): Offset(end)
            for topic, end in ends.items()
        }
        request = StartRequest(
            Epoch(1), state_digest(fragment), stateful=True, on_change=None, place="",
            sources=sources, deploy=DeployId(self.life, record.version),
        )  # fmt: skip
        marker = replace(
            first_marker(request, LIFE, positions, NOW),
            anew=anew,
            output=output,
            batch=BatchId(4),
            totals=Totals(records_in=records_in),
            left=carry(decode_marker(last, ""), planned).marker.left if last is not None else (),
        )
        self.world.write(fragment.names.markers, encode_marker(marker))

    def marker(self, document: str) -> CommitMarker:
        """The last marker, in the names of a document."""
        (fragment,) = (f for f in self.compare(document).plan.fragments if f.name == MOVING)
        last = self.world.log.last(fragment.names.markers)
        assert last is not None
        planned = planned_sources(fragment, dict(self.record.topic_ids))
        return carry(decode_marker(last.value or b"", ""), planned).marker

    @property
    def life(self) -> NetworkLife:
        """The network's life."""
        found = self.world.catalog.networks.get(NET)
        assert found is not None
        return found.life

    @property
    def record(self) -> FragmentRecord:
        """The record of `moving` in the catalog."""
        found = self.world.catalog.fragments.get(NET, MOVING)
        assert found is not None
        return found


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """One filter, which has read five of nine offsets."""
    found = Scene(tmp_path)
    found.world.kafka.add("car-sightings", partitions=1, records=9)
    found.deploy(FILTER)
    found.read(FILTER, {"car-sightings": 5})
    return found


def item(found: Comparison, name: str = MOVING) -> Item:
    """The item of a fragment."""
    return next(one for one in found.changes.fragments if one.name == name)


def test_a_renamed_stream_needs_no_choice(scene: Scene) -> None:
    """Nothing is announced, since nothing is lost or repeated."""
    found = scene.compare(RENAMED)
    found.check()
    assert item(found).action is Action.CHANGE
    assert found.changes.announced == ()
    assert "it goes on at its positions: nothing is lost or repeated" in item(found).reasons


def test_the_state_of_a_renamed_stream_is_kept(tmp_path: Path) -> None:
    """Its digest contains streams by position, not by name."""
    scene = Scene(tmp_path)
    scene.deploy(COUNTS)
    scene.read(COUNTS, {"car-sightings": 5})
    renamed = COUNTS.replace("sightings: {topic", "seen: {topic").replace(
        "aggregate: sightings", "aggregate: seen"
    )
    found = scene.compare(renamed)
    found.check()
    assert item(found).fate is Fate.KEPT


def test_a_topic_that_was_never_read_needs_a_choice(scene: Scene) -> None:
    """Refused with both choices; nothing is changed."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    before = scene.record
    found = scene.compare(TWO)
    with pytest.raises(DeployError) as caught:
        deploy(found, scene.world.servers, lambda _: None)
    (problem,) = caught.value.problems
    assert "stream more reads topic more-sightings, which this fragment has never read" in str(
        problem
    )
    assert "it holds 3 offsets" in problem.message
    assert "--input more=beginning" in problem.hint
    assert "--input more=end" in problem.hint
    assert scene.record == before


@pytest.mark.parametrize(
    ("choice", "fared", "kept"),
    [
        (InputFrom.BEGINNING, Fared.READ, (((0, 0, 3),), True, False)),
        (InputFrom.END, Fared.PASSED_OVER, (((0, 3, 3),), False, True)),
    ],
)
def test_a_choice_is_announced_and_kept_as_offsets(
    scene: Scene, choice: InputFrom, fared: Fared, kept: tuple[Ranges, bool, bool]
) -> None:
    """The lane gets the offsets of the plan, independent of records that were added since."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    found = scene.compare(TWO, Choices(inputs={StreamName("more"): choice}))
    found.check()
    (announced,) = found.changes.announced
    assert (announced.fragment, announced.stream, announced.fared) == ("moving", "more", fared)
    assert announced.ranges == ((0, 0, 3),)
    assert str(announced) in item(found).reasons
    assert not any("nothing is lost or repeated" in reason for reason in item(found).reasons)
    scene.world.kafka.fill("more-sightings", 7)
    deploy(found, scene.world.servers, lambda _: None)
    topic_id = scene.world.kafka.topics[TopicName("more-sightings")].topic_id
    decided = Begun(StreamName("more"), topic_id, *kept, NetworkVersion(2))
    assert scene.record.begins == (decided,)
    again = scene.compare(TWO)
    again.check()
    assert not again.changes.pending
    # The decision stays when another change is deployed before the lane has started.
    scene.deploy(TWO.replace("speed > 0", "speed > 1"))
    assert scene.record.begins == (decided,)
    scene.deploy(TWO.replace("  more:", "  others:").replace(" more]", " others]"))
    assert scene.record.begins == (decided._replace(stream=StreamName("others")),)


def test_an_input_that_returns_continues_from_its_position(scene: Scene) -> None:
    """By a rollback or otherwise: it was read before, and needs no choice."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.deploy(TWO, more=InputFrom.BEGINNING)
    scene.read(TWO, {"car-sightings": 9, "more-sightings": 3})
    scene.deploy(FILTER)
    scene.read(FILTER, {"car-sightings": 9})
    scene.world.kafka.fill("more-sightings", 8)
    found = scene.compare(TWO)
    found.check()
    assert found.changes.announced == ()
    at = InputPartition(StreamName("more"), TopicName("more-sightings"), 0)
    deploy(found, scene.world.servers, lambda _: None)
    assert scene.marker(TWO).end[at] == 3


def test_a_topic_that_is_left_before_its_end_is_announced(scene: Scene) -> None:
    """Unread records count in no result; a topic that was read to its end is not announced."""
    elsewhere = FILTER.replace("car-sightings", "more-sightings")
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    with pytest.raises(DeployError, match="leaves topic car-sightings, of which 4 offsets"):
        scene.deploy(elsewhere)
    chosen = Choices(inputs={StreamName("sightings"): InputFrom.BEGINNING})
    found = scene.compare(elsewhere, chosen)
    found.check()
    announced = [(one.topic, one.fared, one.ranges) for one in found.changes.announced]
    assert announced == [
        ("more-sightings", Fared.READ, ((0, 0, 3),)),
        ("car-sightings", Fared.LEFT_UNREAD, ((0, 5, 9),)),
    ]
    scene.read(FILTER, {"car-sightings": 9})
    with pytest.raises(DeployError) as caught:
        scene.deploy(elsewhere)
    assert "car-sightings" not in str(caught.value)


def test_a_partition_added_since_the_last_marker_is_left_unread(scene: Scene) -> None:
    """No record of it was read, so all of them are announced."""
    topic = TopicName("car-sightings")
    grow(scene.world.kafka, topic, 2)
    scene.world.kafka.fill(topic, 9)
    scene.world.kafka.add("more-sightings", partitions=1)
    chosen = Choices(inputs={StreamName("sightings"): InputFrom.BEGINNING})
    found = scene.compare(FILTER.replace("car-sightings", "more-sightings"), chosen)
    announced = {one.topic: one.ranges for one in found.changes.announced}
    assert announced[topic] == ((0, 5, 9), (1, 0, 9))


def test_a_recreated_topic_needs_a_choice(scene: Scene) -> None:
    """The positions refer to deleted records; the state would not fit either."""
    scene.world.kafka.add("car-sightings", partitions=1, records=2)
    with pytest.raises(DeployError, match="has never read; it holds 2 offsets"):
        scene.deploy(FILTER)
    done = scene.deploy(FILTER, sightings=InputFrom.BEGINNING)
    assert done.version == 2
    (begins,) = scene.record.begins
    assert begins.topic_id == scene.world.kafka.topics[TopicName("car-sightings")].topic_id


def test_a_state_of_other_topics_does_not_fit(tmp_path: Path) -> None:
    """It needs both choices: for the state, and for the beginning."""
    scene = Scene(tmp_path)
    scene.world.kafka.add("car-sightings", partitions=1, records=9)
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.deploy(COUNTS)
    scene.read(COUNTS, {"car-sightings": 9})
    elsewhere = COUNTS.replace("car-sightings", "more-sightings")
    with pytest.raises(DeployError) as caught:
        scene.deploy(elsewhere)
    (problem,) = caught.value.problems
    assert "--state moving=rebuild" in problem.hint
    assert "--input sightings=end" in problem.hint
    chosen = Choices(OnChange.EMPTY, inputs={StreamName("sightings"): InputFrom.END})
    found = scene.compare(elsewhere, chosen)
    found.check()
    assert item(found).fate is Fate.EMPTY


def test_a_new_fragment_that_writes_the_output_of_another_needs_a_choice(scene: Scene) -> None:
    """The last box is renamed and writes the same topic: all results would be duplicated."""
    before = f"{FILTER}outputs: {{moving: {{topic: moving-cars}}}}\n"
    scene.deploy(before)
    scene.read(before, {"car-sightings": 9})
    scene.world.kafka.fill("moving-cars", 4)
    after = before.replace("moving:", "driving:")
    with pytest.raises(DeployError, match="topic moving-cars was last written by another fragment"):
        scene.deploy(after)
    found = scene.compare(after, Choices(inputs={StreamName("sightings"): InputFrom.END}))
    ((begins,),) = found.changes.begins.values()
    assert begins.ranges == ((0, 9, 9),)
    (announced,) = found.changes.announced
    assert (announced.fragment, announced.fared, announced.ranges) == (
        "driving",
        Fared.LEFT_TO_OTHERS,
        ((0, 0, 9),),
    )


def test_a_lane_that_has_read_nothing_needs_no_choice(scene: Scene) -> None:
    """Nothing can be lost or duplicated."""
    scene.read(FILTER, {"car-sightings": 0}, records_in=0)
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.compare(TWO).check()


def test_an_input_read_since_the_deploy_can_be_decided_later(scene: Scene) -> None:
    """Nothing was read at the deploy; then the earlier lane continued to read, and stopped."""
    scene.read(FILTER, {"car-sightings": 0}, records_in=0)
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    old = scene.record
    scene.deploy(TWO)
    scene.read_as(old, FILTER, {"car-sightings": 5})
    with pytest.raises(DeployError, match="more-sightings, which this fragment has never read"):
        scene.deploy(TWO)
    done = scene.deploy(TWO, more=InputFrom.END)
    assert done.changed
    (decided,) = scene.record.begins
    assert decided.ranges == ((0, 3, 3),)
    assert decided.version == scene.record.version == done.version


def test_an_input_and_a_state_made_since_the_deploy_are_decided_together(tmp_path: Path) -> None:
    """The earlier lane's state was made without that input: `--input` alone would not do."""
    scene = Scene(tmp_path)
    scene.world.kafka.add("car-sightings", partitions=1, records=9)
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.deploy(COUNTS)
    old, two = scene.record, TWO.replace("filter: both, where: speed > 0", COUNTING)
    scene.deploy(two)
    scene.read_as(old, COUNTS, {"car-sightings": 5})
    (problem,) = scene.compare(two).changes.problems
    assert "--state moving=rebuild" in problem.hint
    assert "--input more=end" in problem.hint
    inputs = {StreamName("more"): InputFrom.END}
    (problem,) = scene.compare(two, Choices(inputs=inputs)).changes.problems
    assert "its state does not fit" in problem.message
    named = {MOVING: OnChange.REBUILD}
    done = deploy(
        scene.compare(two, Choices(named=named, inputs=inputs)),
        scene.world.servers,
        lambda _: None,
    )
    assert scene.record.choice == (OnChange.REBUILD, LIFE)
    assert [begun.version for begun in scene.record.begins] == [done.version]


def test_a_choice_for_an_unchanged_fragment_raises_its_version(tmp_path: Path) -> None:
    """So that a lane that is starting now does not consume it; repeating it changes nothing."""
    scene = Scene(tmp_path)
    scene.world.kafka.add("car-sightings", partitions=1, records=9)
    scene.deploy(COUNTS)
    scene.read(COUNTS, {"car-sightings": 9})
    empty = Choices(named={MOVING: OnChange.EMPTY})
    done = deploy(scene.compare(COUNTS, empty), scene.world.servers, lambda _: None)
    assert done.changed
    assert scene.record.version == done.version == 2
    again = deploy(scene.compare(COUNTS, empty), scene.world.servers, lambda _: None)
    assert not again.changed
    rebuild = scene.compare(COUNTS, Choices(named={MOVING: OnChange.REBUILD}))
    assert deploy(rebuild, scene.world.servers, lambda _: None).version == scene.record.version == 3


def test_a_lane_that_begins_otherwise_after_the_comparison_fails_the_deploy(scene: Scene) -> None:
    """The user's choice was made for another beginning."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    found = scene.compare(TWO, Choices(inputs={StreamName("more"): InputFrom.END}))
    scene.read(FILTER, {"car-sightings": 7})  # it has continued to read
    scene.read(FILTER, {"car-sightings": 8}, anew="life@1")
    with pytest.raises(RetryError, match="its lane has begun otherwise") as caught:
        deploy(found, scene.world.servers, lambda _: None)
    assert caught.value.place == "fragment cars.moving"
    assert scene.record.version == 1
    scene.deploy(TWO, more=InputFrom.END, sightings=InputFrom.END)
    assert scene.record.version == 2


@pytest.mark.parametrize(
    ("document", "inputs", "message"),
    [
        (FILTER, {"sightings": InputFrom.END}, "--input names sightings, of which nothing has to"),
        (TWO, {"mroe": InputFrom.END, "more": InputFrom.END}, "--input names mroe"),
    ],
)
def test_a_choice_where_nothing_is_to_be_chosen_is_refused(
    scene: Scene, document: str, inputs: dict[str, InputFrom], message: str
) -> None:
    """A mistake must not be accepted as a decision."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    chosen = {StreamName(name): choice for name, choice in inputs.items()}
    with pytest.raises(DeployError, match=message):
        scene.compare(document, Choices(inputs=chosen)).check()


def test_a_removed_stream_cannot_begin(scene: Scene) -> None:
    """It can only be left at its position."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.deploy(TWO, more=InputFrom.BEGINNING)
    scene.read(TWO, {"car-sightings": 9, "more-sightings": 1})
    with pytest.raises(DeployError, match="stream more is not read any more, so that it cannot"):
        scene.deploy(FILTER, more=InputFrom.BEGINNING)
    scene.deploy(FILTER, more=InputFrom.END)


def test_a_topic_recreated_between_plan_and_deploy_fails_the_deploy(scene: Scene) -> None:
    """Nothing is changed: the plan shown to the user does not apply any more."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    found = scene.compare(TWO, Choices(inputs={StreamName("more"): InputFrom.END}))
    scene.world.kafka.add("more-sightings", partitions=1)
    before = scene.record
    with pytest.raises(RetryError, match="made again since it was compared") as caught:
        deploy(found, scene.world.servers, lambda _: None)
    assert caught.value.place == "topic more-sightings"
    assert scene.record == before
    del scene.world.kafka.topics[TopicName("more-sightings")]
    with pytest.raises(RetryError, match="deleted since it was compared"):
        deploy(found, scene.world.servers, lambda _: None)
    assert scene.record == before


def test_a_deleted_topic_is_a_change(scene: Scene) -> None:
    """The fragment has positions in it."""
    scene.deploy(FILTER)
    (fragment,) = scene.compare(FILTER).plan.fragments
    kafka = scene.world.kafka
    for topics, changed in ((set(kafka.topics), False), ({fragment.names.markers}, True)):
        inputs = Inputs(kafka.describe(topics), {}, {}, frozenset(), scene.life)
        assert inputs.is_changed(fragment, scene.record) is changed

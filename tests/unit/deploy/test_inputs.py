"""What `plan` says of inputs that a fragment has never read, or leaves; and what a deploy keeps."""

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
    """A network that is deployed step by step, whose fragment `moving` reads all there is."""

    def __init__(self, folder: Path) -> None:
        self.world, self._folder = World.new(), folder

    def compare(self, document: str, choices: Choices | None = None) -> Comparison:
        """What a deploy would do."""
        path = write_project(self._folder, document)
        found = read_document(path, lambda _: None)
        return compare(found, US, self.world.servers, choices or Choices())

    def deploy(self, document: str, **inputs: InputFrom) -> Deployed:
        """Do it."""
        chosen = {StreamName(name): choice for name, choice in inputs.items()}
        found = self.compare(document, Choices(inputs=chosen))
        return deploy(found, self.world.servers, lambda _: None)

    def read(
        self, document: str, ends: Mapping[str, int], records_in: int = 5, **fields: Any
    ) -> None:
        """Let the lane of the deployed version commit a marker; `ends` by topic, partition 0."""
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
        """Let a lane commit a marker that was started for this record."""
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
        wanted = StartRequest(
            Epoch(1), state_digest(fragment), stateful=True, on_change=None, place="",
            sources=sources, deploy=DeployId(self.life, record.version),
        )  # fmt: skip
        marker = replace(
            first_marker(wanted, LIFE, positions, NOW),
            anew=anew,
            output=output,
            batch=BatchId(4),
            totals=Totals(records_in=records_in),
            left=carry(decode_marker(last, ""), planned).marker.left if last is not None else (),
        )
        self.world.write(fragment.names.markers, encode_marker(marker))

    def marker(self, document: str) -> CommitMarker:
        """The last marker in the names of a document."""
        (fragment,) = (f for f in self.compare(document).plan.fragments if f.name == MOVING)
        last = self.world.log.last(fragment.names.markers)
        assert last is not None
        planned = planned_sources(fragment, dict(self.record.topic_ids))
        return carry(decode_marker(last.value or b"", ""), planned).marker

    @property
    def life(self) -> NetworkLife:
        """Of the network."""
        found = self.world.catalog.networks.get(NET)
        assert found is not None
        return found.life

    @property
    def record(self) -> FragmentRecord:
        """What the catalog holds of `moving`."""
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
    """What is said of a fragment."""
    return next(one for one in found.changes.fragments if one.name == name)


def test_a_stream_of_another_name_needs_nothing(scene: Scene) -> None:
    """Nothing is announced, since nothing is lost or repeated."""
    found = scene.compare(RENAMED)
    found.check()
    assert item(found).action is Action.CHANGE
    assert found.changes.announced == ()
    assert "it goes on at its positions: nothing is lost or repeated" in item(found).reasons


def test_a_state_whose_stream_has_another_name_is_kept(tmp_path: Path) -> None:
    """Its digest counts streams by their places."""
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
    """What the plan shows is what the lane is told, whatever comes into the topic meanwhile."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    found = scene.compare(TWO, Choices(inputs={StreamName("more"): choice}))
    found.check()
    (told,) = found.changes.announced
    assert (told.fragment, told.stream, told.fared) == ("moving", "more", fared)
    assert told.ranges == ((0, 0, 3),)
    assert str(told) in item(found).reasons
    assert not any("nothing is lost or repeated" in reason for reason in item(found).reasons)
    scene.world.kafka.fill("more-sightings", 7)
    deploy(found, scene.world.servers, lambda _: None)
    topic_id = scene.world.kafka.topics[TopicName("more-sightings")].topic_id
    decided = Begun(StreamName("more"), topic_id, *kept, NetworkVersion(2))
    assert scene.record.begins == (decided,)
    again = scene.compare(TWO)
    again.check()
    assert not again.changes.pending
    # What was decided stays so when something else is deployed before the lane has started.
    scene.deploy(TWO.replace("speed > 0", "speed > 1"))
    assert scene.record.begins == (decided,)
    scene.deploy(TWO.replace("  more:", "  others:").replace(" more]", " others]"))
    assert scene.record.begins == (decided._replace(stream=StreamName("others")),)


def test_an_input_that_comes_back_goes_on_where_it_was(scene: Scene) -> None:
    """By a rollback or otherwise: it was read once, and needs no choice."""
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


def test_a_topic_that_is_left_before_its_end_needs_a_word(scene: Scene) -> None:
    """What was not read counts in no result; of one that was read to its end nothing is said."""
    elsewhere = FILTER.replace("car-sightings", "more-sightings")
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    with pytest.raises(DeployError, match="leaves topic car-sightings, of which 4 offsets"):
        scene.deploy(elsewhere)
    chosen = Choices(inputs={StreamName("sightings"): InputFrom.BEGINNING})
    found = scene.compare(elsewhere, chosen)
    found.check()
    told = [(one.topic, one.fared, one.ranges) for one in found.changes.announced]
    assert told == [
        ("more-sightings", Fared.READ, ((0, 0, 3),)),
        ("car-sightings", Fared.LEFT_UNREAD, ((0, 5, 9),)),
    ]
    scene.read(FILTER, {"car-sightings": 9})
    with pytest.raises(DeployError) as caught:
        scene.deploy(elsewhere)
    assert "car-sightings" not in str(caught.value)


def test_a_partition_that_came_since_the_last_marker_is_left_unread(scene: Scene) -> None:
    """No record of it was read, so all of them are announced."""
    topic = TopicName("car-sightings")
    grow(scene.world.kafka, topic, 2)
    scene.world.kafka.fill(topic, 9)
    scene.world.kafka.add("more-sightings", partitions=1)
    chosen = Choices(inputs={StreamName("sightings"): InputFrom.BEGINNING})
    found = scene.compare(FILTER.replace("car-sightings", "more-sightings"), chosen)
    told = {one.topic: one.ranges for one in found.changes.announced}
    assert told[topic] == ((0, 5, 9), (1, 0, 9))


def test_a_topic_that_was_made_again_needs_a_choice(scene: Scene) -> None:
    """The positions mean records that are gone; the state would not fit either."""
    scene.world.kafka.add("car-sightings", partitions=1, records=2)
    with pytest.raises(DeployError, match="has never read; it holds 2 offsets"):
        scene.deploy(FILTER)
    done = scene.deploy(FILTER, sightings=InputFrom.BEGINNING)
    assert done.version == 2
    (begins,) = scene.record.begins
    assert begins.topic_id == scene.world.kafka.topics[TopicName("car-sightings")].topic_id


def test_a_state_of_other_topics_does_not_fit(tmp_path: Path) -> None:
    """It needs both choices: what becomes of the state, and where to begin."""
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


def test_a_new_fragment_beside_the_results_of_another_needs_a_choice(scene: Scene) -> None:
    """The last box gets another name and writes the same topic: all would come a second time."""
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
    (told,) = found.changes.announced
    assert (told.fragment, told.fared, told.ranges) == (
        "driving",
        Fared.LEFT_TO_OTHERS,
        ((0, 0, 9),),
    )


def test_a_lane_that_has_read_nothing_needs_no_choice(scene: Scene) -> None:
    """Nothing can be lost or come twice."""
    scene.read(FILTER, {"car-sightings": 0}, records_in=0)
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.compare(TWO).check()


def test_what_was_read_since_the_deploy_can_be_decided_then(scene: Scene) -> None:
    """Nothing was read when it was deployed; then the lane of before read on, and stopped."""
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


def test_a_choice_for_an_unchanged_fragment_is_of_another_version(tmp_path: Path) -> None:
    """So that a lane which starts by now does not end it unseen; said again it changes nothing."""
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


def test_what_was_compared_must_still_be_so(scene: Scene) -> None:
    """For a lane that has begun otherwise meanwhile, the answer would mean another thing."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    found = scene.compare(TWO, Choices(inputs={StreamName("more"): InputFrom.END}))
    scene.read(FILTER, {"car-sightings": 7})  # it has read on
    scene.read(FILTER, {"car-sightings": 8}, anew="life@1")
    with pytest.raises(RetryError, match="its lane has begun otherwise") as caught:
        deploy(found, scene.world.servers, lambda _: None)
    assert caught.value.place == "fragment cars.moving"
    assert scene.record.version == 1
    scene.deploy(TWO, more=InputFrom.END)
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
    """A slip must not pass for a decision."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    chosen = {StreamName(name): choice for name, choice in inputs.items()}
    with pytest.raises(DeployError, match=message):
        scene.compare(document, Choices(inputs=chosen)).check()


def test_a_stream_that_goes_cannot_begin(scene: Scene) -> None:
    """It can only be left where it is."""
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.deploy(TWO, more=InputFrom.BEGINNING)
    scene.read(TWO, {"car-sightings": 9, "more-sightings": 1})
    with pytest.raises(DeployError, match="stream more is not read any more, so that it cannot"):
        scene.deploy(FILTER, more=InputFrom.BEGINNING)
    scene.deploy(FILTER, more=InputFrom.END)


def test_a_topic_that_is_made_again_between_plan_and_deploy_changes_nothing(scene: Scene) -> None:
    """What was shown is not what would be done."""
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


def test_a_topic_that_is_gone_makes_a_change(scene: Scene) -> None:
    """The fragment's positions are in it."""
    scene.deploy(FILTER)
    (fragment,) = scene.compare(FILTER).plan.fragments
    kafka = scene.world.kafka
    for topics, changed in ((set(kafka.topics), False), ({fragment.names.advances}, True)):
        inputs = Inputs(kafka.describe(topics), {}, {}, frozenset(), scene.life)
        assert inputs.is_changed(fragment, scene.record) is changed

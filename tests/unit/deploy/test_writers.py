"""Recorded writers of output topics, and successions of fragments."""

from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.deploy.apply import Comparison, deploy
from pipeline.deploy.redrive_topic import RedriveTopic
from pipeline.deploy.writers import recorded_writers
from pipeline.errors import DeployError
from pipeline.ids import FragmentId, FragmentName, NetworkVersion, StreamName, TopicId, TopicName
from pipeline.markers.codec import encode_marker
from pipeline.markers.deploys import DeployId
from pipeline.names import FragmentNames, value_subject
from pipeline.planner.inputs import InputFrom
from pipeline.planner.state import Choices, OnChange
from schemas.compatibility import Level
from tests.unit.deploy.test_inputs import FILTER, NET, TWO, Scene, item
from tests.unit.deploy.test_inputs import MOVING as MOVED

OUT = TopicName("moving-cars")
MOVING = f"{FILTER}outputs: {{moving: {{topic: {OUT}}}}}\n"
DRIVING = MOVING.replace("moving:", "driving:")
MOVED_ASIDE = "outputs: {moving: {topic: standing-cars}}\n"
COUNTING = "aggregate: sightings, window: 10s, by: [car], compute: {n: count(*)}"
END = {"sightings": InputFrom.END}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """`moving` has read five of nine offsets, and has published four results.

    Its topic takes any schema: records are named after their box.
    """
    found = Scene(tmp_path)
    found.world.kafka.add("car-sightings", partitions=1, records=9)
    found.deploy(MOVING)
    found.read(MOVING, {"car-sightings": 5})
    found.world.kafka.fill(OUT, 4)
    found.world.registry.set_level(value_subject(OUT), Level.NONE)
    return found


def both(moving: str, standing: str) -> str:
    """Two filters, and their output topics."""
    boxes = "  standing: {filter: sightings, where: speed < 1}\n"
    outputs = f"moving: {{topic: {moving}}}, standing: {{topic: {standing}}}"
    return f"{FILTER}{boxes}outputs: {{{outputs}}}\n"


def output_id(scene: Scene, topic: str = OUT) -> str:
    """Kafka's id of the output topic."""
    return scene.world.kafka.topics[TopicName(topic)].topic_id


def compared(scene: Scene, document: str, choice: InputFrom) -> Comparison:
    """Compare a document, with the required choice."""
    return scene.compare(document, Choices(inputs={StreamName("sightings"): choice}))


def test_the_last_writer_comes_first(tmp_path: Path) -> None:
    """A fragment that writes a topic again moves to the front; other topics are unchanged."""
    plan = Scene(tmp_path).compare(MOVING).plan
    other, topic = (TopicId("#other"), (FragmentName("x"),)), TopicId("#out")
    ids = {OUT: topic}
    assert recorded_writers((), plan, ids) == ((topic, ("moving",)),)
    before = (other, (topic, (FragmentName("driving"), FragmentName("moving"))))
    assert recorded_writers(before, plan, ids) == (other, (topic, ("moving", "driving")))


def test_a_topic_with_repeats_of_a_removed_fragment_is_not_read(scene: Scene) -> None:
    """Also once a precise fragment has taken it over, and neither plan says so any more."""
    repeated = replace(scene.marker(MOVING), repeated=(output_id(scene),))
    markers = FragmentNames(FragmentId(NET, FragmentName("moving"))).markers
    scene.world.write(markers, encode_marker(repeated))
    scene.deploy(DRIVING, **END)
    count = "{aggregate: driving, window: 10s, by: [car], compute: {n: count(*)}}"
    read = DRIVING.replace("outputs:", f"  counts: {count}\noutputs:")
    with pytest.raises(DeployError, match="moving-cars was written with recovery rollback"):
        scene.deploy(read)


def test_a_fragment_that_returns_to_its_topic_needs_a_choice(scene: Scene) -> None:
    """Its own marker is older than the results of the fragment that wrote in between."""
    scene.deploy(DRIVING, **END)
    driving = scene.world.catalog.fragments.get(NET, FragmentName("driving"))
    assert driving is not None
    assert driving.succeeds == (2, output_id(scene), ("moving",), ())
    with pytest.raises(DeployError, match="topic moving-cars was last written by another fragment"):
        scene.deploy(MOVING)
    scene.deploy(MOVING, **END)
    reasons = item(scene.compare(MOVING.replace("speed > 0", "speed > 1"))).reasons
    assert "it begins anew, since another fragment was the last to write its output" in reasons
    assert not any("nothing is lost or repeated" in reason for reason in reasons)
    assert scene.record.succeeds == (3, output_id(scene), ("driving",), ())
    ((stream, _, ranges, *_),) = scene.record.begins
    assert (stream, ranges) == ("sightings", ((0, 9, 9),))


def test_a_decision_stays_until_the_fragment_has_begun_anew(scene: Scene) -> None:
    """Another deploy before the lane has started needs no new choice, and keeps the decision."""
    scene.deploy(DRIVING, **END)
    changed = DRIVING.replace("speed > 0", "speed > 1")
    found = scene.compare(changed)
    found.check()
    assert found.changes.announced == ()
    scene.deploy(changed)
    driving = scene.world.catalog.fragments.get(NET, FragmentName("driving"))
    assert driving is not None
    assert driving.succeeds == (2, output_id(scene), ("moving",), ())
    back = changed.replace("outputs:", "  moving: {filter: sightings, where: speed < 1}\noutputs:")
    scene.deploy(back.replace("outputs: {", "outputs: {moving: {topic: other-cars}, "))
    driving = scene.world.catalog.fragments.get(NET, FragmentName("driving"))
    assert driving is not None
    assert driving.succeeds == (2, output_id(scene), (), ("moving",))
    assert [ranges for _, _, ranges, *_ in driving.begins] == [((0, 9, 9),)]


@pytest.mark.parametrize("document", [DRIVING, MOVING], ids=["never_ran", "ran_before"])
def test_a_fragment_removed_before_it_began_needs_a_new_choice(scene: Scene, document: str) -> None:
    """Its earlier marker is older than the results that the other one wrote since."""
    if document == MOVING:
        scene.deploy(DRIVING, **END)
    scene.deploy(document, **END)
    scene.deploy(FILTER.replace("moving:", "standing:"))
    with pytest.raises(DeployError, match="topic moving-cars was last written by another fragment"):
        scene.deploy(document)
    scene.deploy(document, **END)
    (record,) = scene.world.catalog.fragments.of(NET)
    assert record.succeeds is not None
    assert record.succeeds[2] in {("moving",), ("driving",)} - {(record.fragment,)}


def test_a_fragment_with_another_output_before_it_began_needs_a_new_choice(scene: Scene) -> None:
    """Even if it was the last writer of its output in between."""
    aside = f"{FILTER}{MOVED_ASIDE}"
    scene.deploy(aside)
    scene.read(aside, {"car-sightings": 7})
    scene.deploy(DRIVING, **END)
    scene.deploy(MOVING, **END)
    scene.deploy(aside)
    with pytest.raises(DeployError, match="topic moving-cars was last written by another fragment"):
        scene.deploy(MOVING)


def test_a_topic_of_an_earlier_version_belongs_to_the_network(scene: Scene) -> None:
    """`destroy` removes it; a topic that others created is never removed, which is reported."""
    scene.deploy(FILTER.replace("moving:", "standing:"))
    reported: list[str] = []
    deploy(scene.compare(MOVING), scene.world.servers, reported.append)
    assert not any("never removed" in line for line in reported)
    scene.world.kafka.add("others-cars", partitions=1)
    deploy(scene.compare(MOVING.replace(OUT, "others-cars")), scene.world.servers, reported.append)
    assert "topic others-cars was there before" in "\n".join(reported)


def test_the_last_writer_of_a_topic_continues(scene: Scene) -> None:
    """Its marker agrees with the topic, although it was removed in between."""
    elsewhere = FILTER.replace("moving:", "standing:").replace("> 0", "< 1")
    scene.deploy(elsewhere)
    scene.compare(MOVING).check()


def test_a_pending_succession_is_kept_when_the_output_changes(scene: Scene) -> None:
    """Once the fragment has begun anew, the record contains no succession."""
    scene.deploy(DRIVING, **END)
    scene.deploy(MOVING, **END)
    elsewhere = MOVING.replace(OUT, "other-cars")
    scene.deploy(elsewhere)
    topic_id = output_id(scene, "other-cars")
    assert scene.record.succeeds == (3, topic_id, ("driving",), ())
    life = scene.world.catalog.networks.get(NET)
    assert life is not None
    scene.read(elsewhere, {"car-sightings": 9}, anew=f"{life.life}@3")
    assert not scene.deploy(elsewhere).changed
    scene.deploy(elsewhere.replace("speed > 0", "speed > 1"))
    assert scene.record.succeeds is None


def test_a_fragment_that_returns_to_its_own_topic_before_it_began_continues(scene: Scene) -> None:
    """A rollback before it has begun anew elsewhere: no other fragment has written there."""
    two = both(OUT, "standing-cars")
    scene.deploy(two)
    scene.world.registry.set_level(value_subject(TopicName("standing-cars")), Level.NONE)
    scene.read(two, {"car-sightings": 5}, output=output_id(scene))
    scene.deploy(FILTER + MOVED_ASIDE, **END)
    assert scene.record.succeeds is not None
    assert scene.record.succeeds[2:] == (("standing",), ())
    found = scene.compare(MOVING)
    found.check()
    assert "it goes on at its positions: nothing is lost or repeated" in item(found).reasons
    deploy(found, scene.world.servers, lambda _: None)
    assert scene.record.succeeds is None
    assert scene.record.begins == ()


def test_a_decision_for_another_output_does_not_apply_to_the_own_one(tmp_path: Path) -> None:
    """A fragment that has never run returns: it reads all, although it was to begin at the end."""
    scene = Scene(tmp_path)
    scene.world.kafka.add("car-sightings", partitions=1, records=9)
    scene.deploy(both(OUT, "standing-cars"))
    scene.world.registry.set_level(value_subject(TopicName("standing-cars")), Level.NONE)
    scene.deploy(FILTER + MOVED_ASIDE, **END)
    assert [begun.ranges for begun in scene.record.begins] == [((0, 9, 9),)]
    elsewhere = MOVING.replace(OUT, "other-cars")
    scene.deploy(elsewhere)
    assert [begun.ranges for begun in scene.record.begins] == [((0, 9, 9),)]
    scene.deploy(MOVING)
    assert scene.record.succeeds is None
    assert scene.record.begins == ()


def test_a_fragment_whose_late_lane_began_elsewhere_needs_a_choice(scene: Scene) -> None:
    """That lane's marker has replaced the one by which the deploy let the fragment continue."""
    two = both(OUT, "standing-cars")
    scene.deploy(two)
    scene.world.registry.set_level(value_subject(TopicName("standing-cars")), Level.NONE)
    scene.read(two, {"car-sightings": 5}, output=output_id(scene))
    aside = FILTER + MOVED_ASIDE
    scene.deploy(aside, **END)
    scene.deploy(MOVING)
    assert scene.record.begun_anew == ""
    late = DeployId(scene.life, NetworkVersion(3))
    scene.read(aside, {"car-sightings": 9}, anew=str(late))
    with pytest.raises(DeployError, match="this one has begun in another topic since it was"):
        scene.deploy(MOVING)
    version = scene.deploy(MOVING, **END).version
    assert scene.record.succeeds == (version, output_id(scene), (), ())
    assert scene.record.begun_anew == str(late)


def test_an_input_decided_for_another_output_needs_a_choice_for_the_own_one(scene: Scene) -> None:
    """The fragment has read one of its two inputs before, and returns with both."""
    two = both(OUT, "standing-cars")
    scene.deploy(two)
    scene.world.registry.set_level(value_subject(TopicName("standing-cars")), Level.NONE)
    scene.read(two, {"car-sightings": 5}, output=output_id(scene))
    scene.world.kafka.add("more-sightings", partitions=1, records=3)
    scene.deploy(TWO + MOVED_ASIDE, **END, more=InputFrom.END)
    assert {begun.stream for begun in scene.record.begins} == {"sightings", "more"}
    back = f"{TWO}outputs: {{moving: {{topic: {OUT}}}}}\n"
    with pytest.raises(DeployError, match="more-sightings, which this fragment has never read"):
        scene.deploy(back)
    done = scene.deploy(back, more=InputFrom.BEGINNING)
    (begun,) = scene.record.begins
    assert (begun.stream, begun.ranges, begun.version) == ("more", ((0, 0, 3),), done.version)


def test_a_writer_with_another_output_now_is_distinguished(scene: Scene) -> None:
    """It writes another topic now, and must not be stopped there."""
    scene.deploy(both("other-cars", OUT), **END)
    standing = scene.world.catalog.fragments.get(NET, FragmentName("standing"))
    assert standing is not None
    assert standing.succeeds == (2, output_id(scene), (), ("moving",))


def test_a_fragment_that_begins_anew_accepts_no_choice_for_state(scene: Scene) -> None:
    """It begins without state, whatever it kept before."""
    scene.deploy(DRIVING, **END)
    counts = MOVING.replace("filter: sightings, where: speed > 0", COUNTING)
    compared(scene, counts, InputFrom.BEGINNING).check()
    begin = {StreamName("sightings"): InputFrom.BEGINNING}
    found = scene.compare(counts, Choices(named={MOVED: OnChange.EMPTY}, inputs=begin))
    with pytest.raises(DeployError, match="which begins anew without a state"):
        found.check()


def test_a_fragment_that_begins_anew_does_not_need_its_earlier_redrive_topic(scene: Scene) -> None:
    """No records are sent to it any more; the next redrive creates another one."""
    world = scene.world

    def redrive() -> RedriveTopic:
        plan = scene.compare(MOVING).plan
        return RedriveTopic(plan, plan.fragments[0], world.catalog, world.kafka, world.log)

    redrive().create()
    scene.read(MOVING, {"car-sightings": 5}, output=output_id(scene))
    topic = redrive().planned.name
    scene.deploy(DRIVING, **END)
    del world.kafka.topics[topic]
    scene.deploy(MOVING, **END)
    assert not redrive().is_there()
    redrive().create()
    assert dict(scene.record.topic_ids)[topic] == world.kafka.topics[topic].topic_id

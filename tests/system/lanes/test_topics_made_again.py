"""Topics that change under a lane: made again, or cut short by their retention."""

import shutil
from functools import partial

import pytest

from brokers.records import NewTopicSpec
from pipeline.catalog.records import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentId, FragmentName, Offset, TopicName
from pipeline.names import FragmentNames
from pipeline.planner.state import Choices, OnChange
from tests.system.support import READING, Installation, network_id, readings

pytestmark = [pytest.mark.system, pytest.mark.timeout(300), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1m
    silence: missing
    partitions: 1
boxes:
  kept: {{map: readings, select: [sensor, value]}}
  counts: {{aggregate: readings, window: 1s, by: [sensor], compute: {{n: count(*)}}}}
"""
BOXES = ("kept", "counts")
WITHIN_S = 60.0


def send(medusa: Installation, name: str, count: int) -> None:
    """Send readings to partition 0."""
    for reading in readings(count):
        value = medusa.encoded(f"{name}-in-value", READING, reading)
        medusa.send(f"{name}-in", value, partition=0)
    medusa.producer.flush(10)


def has_read(medusa: Installation, name: str, count: int) -> bool:
    """Whether both fragments have settled so many records."""
    found = [medusa.status(name, box) for box in BOXES]
    return all(status is not None and status.records_in == count for status in found)


def started(medusa: Installation, name: str, count: int) -> None:
    """Deploy, and wait until so many records are settled."""
    medusa.deploy(DOCUMENT.format(name=name), {"reading.avsc": READING})
    for box in BOXES:
        medusa.await_state(name, box, LaneState.RUNNING)
    send(medusa, name, count)
    medusa.wait_for(partial(has_read, medusa, name, count), "all are read", within_s=WITHIN_S)


KEPT = ("cleanup.policy", "message.timestamp.type", "retention.ms", "retention.bytes")


def made_again(medusa: Installation, topic: str) -> None:
    """Delete a topic and make another one of the same name, with the settings that lanes need."""
    name = TopicName(topic)
    config = medusa.admin.topic_configs((name,))[name]
    kept = tuple((key, config[key]) for key in KEPT)
    medusa.admin.delete_topics((name,))
    medusa.admin.create_topics((NewTopicSpec(name, 1, 1, kept),))


def test_a_topic_that_is_made_again_under_a_running_lane_stops_it(medusa: Installation) -> None:
    """Also when it holds more by then than was ever read: of that, nothing is written."""
    started(medusa, "made_again", 3)
    made_again(medusa, "made_again-in")
    send(medusa, "made_again", 20)
    for box in BOXES:
        status = medusa.await_state("made_again", box, LaneState.FAILED)
        assert "topic made_again-in: the topic was deleted and made again" in status.last_error
        assert "destroy the network and deploy it again" in status.last_error
        assert (status.records_in, status.dead_letters) == (3, 0)
    assert len(medusa.records("local.made_again.kept")) == 3
    assert medusa.records("local.made_again.counts") == []


def test_a_topic_that_is_made_again_while_its_lane_is_stopped_is_found_at_the_start(
    medusa: Installation,
) -> None:
    """The lane does not start, and names the topic; also when that has more partitions now."""
    started(medusa, "remade", 3)
    network, topic = network_id("remade"), TopicName("remade-in")
    pause(network, None, medusa.catalog)
    for box in BOXES:
        medusa.await_state("remade", box, LaneState.STOPPED)
    medusa.admin.delete_topics((topic,))
    medusa.admin.create_topics((NewTopicSpec(topic, 4, 1),))
    resume(network, None, medusa.catalog)
    for box in BOXES:
        status = medusa.await_state("remade", box, LaneState.FAILED)
        assert "topic remade-in: the topic was deleted and made again" in status.last_error


def test_an_output_that_is_made_again_stops_its_lane_alone(medusa: Installation) -> None:
    """Nothing goes into a topic that has lost what was published."""
    started(medusa, "output_again", 3)
    made_again(medusa, "local.output_again.kept")
    send(medusa, "output_again", 2)
    status = medusa.await_state("output_again", "kept", LaneState.FAILED)
    assert (
        "topic local.output_again.kept: the topic was deleted and made again" in status.last_error
    )
    assert medusa.records("local.output_again.kept") == []
    medusa.wait_for(
        lambda: (s := medusa.status("output_again", "counts")) is not None and s.records_in == 5,
        "the other fragment goes on",
        within_s=WITHIN_S,
    )


def test_a_lane_that_retention_has_overtaken_says_what_is_gone(medusa: Installation) -> None:
    """Where it stood, where the topic begins now, since when, and what can be done."""
    started(medusa, "overtaken", 3)
    name, topic = network_id("overtaken"), TopicName("overtaken-in")
    for box in BOXES:
        pause(name, FragmentName(box), medusa.catalog)
    for box in BOXES:
        medusa.await_state("overtaken", box, LaneState.STOPPED)
    send(medusa, "overtaken", 9)
    medusa.admin.delete_records(topic, {0: Offset(10)})
    for box in BOXES:
        resume(name, FragmentName(box), medusa.catalog)
    for box in BOXES:
        status = medusa.await_state("overtaken", box, LaneState.FAILED)
        said = status.last_error
        assert "topic overtaken-in, partition 0: the records from offset 3 on were removed" in said
        assert "the topic begins at 10 now (20" in said
        assert "retention.ms" in said
        assert status.records_in == 3
        assert f"--state {box}=empty" in said
    assert len(medusa.records("local.overtaken.kept")) == 3
    chosen = Choices(named={FragmentName(box): OnChange.EMPTY for box in BOXES})
    medusa.deploy(DOCUMENT.format(name="overtaken"), {"reading.avsc": READING}, chosen)
    medusa.wait_for(
        partial(has_read, medusa, "overtaken", 5), "the rest is read", within_s=WITHIN_S
    )
    rest = [reading["value"] for reading in readings(9)[7:]]
    kept = [row["value"] for row in medusa.decoded("local.overtaken.kept")]
    assert kept == [reading["value"] for reading in readings(3)] + rest


def test_a_rebuild_needs_the_dead_letters_that_were_written(medusa: Installation) -> None:
    """A lane goes on without them; when its checkpoint is lost, too, somebody has to choose."""
    network, box = "letters_again", FragmentName("counts")
    letters = FragmentNames(FragmentId(network_id(network), box)).dead_letters
    started(medusa, network, 3)
    medusa.send(f"{network}-in", b"not a record", partition=0)
    medusa.wait_for(lambda: medusa.records(letters), "a dead letter", within_s=WITHIN_S)
    made_again(medusa, letters)
    send(medusa, network, 2)
    medusa.wait_for(partial(has_read, medusa, network, 6), "it goes on", within_s=WITHIN_S)
    pause(network_id(network), box, medusa.catalog)
    medusa.await_state(network, box, LaneState.STOPPED)
    shutil.rmtree(medusa.checkpoints(network) / box)
    resume(network_id(network), box, medusa.catalog)
    status = medusa.await_state(network, box, LaneState.FAILED)
    assert "the dead-letter topic was deleted and made again" in status.last_error
    chosen = Choices(named={box: OnChange.EMPTY})
    medusa.deploy(DOCUMENT.format(name=network), {"reading.avsc": READING}, chosen)
    send(medusa, network, 2)
    medusa.wait_for(partial(has_read, medusa, network, 8), "it is read on", within_s=WITHIN_S)

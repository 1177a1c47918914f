"""Topics that are recreated, or truncated by retention, while a lane reads or writes them."""

import shutil
from functools import partial

import pytest

from brokers.records import NewTopicSpec
from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.expiring import Search
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentId, FragmentName, Millis, Offset, TopicName
from pipeline.lanes.expiring import Cause, Use
from pipeline.names import FragmentNames
from pipeline.planner.state import Choices, OnChange
from pipeline.system_clock import SystemClock
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
    """Whether both fragments have processed so many records."""
    found = [medusa.status(name, box) for box in BOXES]
    return all(status is not None and status.records_in == count for status in found)


def deploy_and_read(medusa: Installation, name: str, count: int) -> None:
    """Deploy, and wait until so many records are processed."""
    medusa.deploy(DOCUMENT.format(name=name), {"reading.avsc": READING})
    for box in BOXES:
        medusa.await_state(name, box, LaneState.RUNNING)
    send(medusa, name, count)
    medusa.wait_for(partial(has_read, medusa, name, count), "all are read", within_s=WITHIN_S)


KEPT = ("cleanup.policy", "message.timestamp.type", "retention.ms", "retention.bytes")


def recreate(medusa: Installation, topic: str) -> None:
    """Delete a topic and create another of the same name, with the settings that lanes need."""
    name = TopicName(topic)
    config = medusa.admin.topic_configs((name,))[name]
    kept = tuple((key, config[key]) for key in KEPT)
    medusa.admin.delete_topics((name,))
    medusa.admin.create_topics((NewTopicSpec(name, 1, 1, kept),))


def test_a_recreated_input_stops_its_running_lane(medusa: Installation) -> None:
    """Also if it already contains more than was ever read: no result of these is written."""
    deploy_and_read(medusa, "made_again", 3)
    recreate(medusa, "made_again-in")
    send(medusa, "made_again", 20)
    for box in BOXES:
        status = medusa.await_state("made_again", box, LaneState.FAILED)
        assert "topic made_again-in: the topic was deleted and made again" in status.last_error
        assert "destroy the network and deploy it again" in status.last_error
        assert (status.records_in, status.dead_letters) == (3, 0)
    assert len(medusa.records("local.made_again.kept")) == 3
    assert medusa.records("local.made_again.counts") == []


def test_an_input_recreated_while_its_lane_is_stopped_is_refused_at_the_start(
    medusa: Installation,
) -> None:
    """The error names the topic; also if the new one has more partitions."""
    deploy_and_read(medusa, "remade", 3)
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


def test_a_recreated_output_stops_only_its_lane(medusa: Installation) -> None:
    """No result is written to a topic that has lost the published ones."""
    deploy_and_read(medusa, "output_again", 3)
    recreate(medusa, "local.output_again.kept")
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


class Ahead(SystemClock):
    """A clock that is some days ahead."""

    def __init__(self, days: int) -> None:
        self._ms = days * 86_400_000

    def now_ms(self) -> Millis:
        """The time by then."""
        return Millis(super().now_ms() + self._ms)


def expiring(medusa: Installation, name: str, days: int) -> list[list[tuple[str, Use, Cause]]]:
    """What retention removes of each fragment in some days, as `status` examines it."""
    search = Search(medusa.admin, medusa.servers.log, Ahead(days), WITHIN_S)
    network = medusa.catalog.networks.get(network_id(name))
    assert network is not None
    records = medusa.catalog.fragments.of(network.network)
    found = search.of([(record, None) for record in records], lambda _: network.life)
    return [[(one.topic, one.use, one.cause) for one in of] for of in found.values()]


def test_a_lane_reports_records_deleted_by_retention_before_it_read_them(
    medusa: Installation,
) -> None:
    """Its position, the topic's first offset, its time, and what to do; `status` warned before."""
    deploy_and_read(medusa, "overtaken", 3)
    name, topic = network_id("overtaken"), TopicName("overtaken-in")
    for box in BOXES:
        pause(name, FragmentName(box), medusa.catalog)
    for box in BOXES:
        medusa.await_state("overtaken", box, LaneState.STOPPED)
    rebuild = [(topic, Use.REBUILD, Cause.AGE)]  # of `counts`, which has a state
    assert expiring(medusa, "overtaken", days=3) == [[], []]
    assert expiring(medusa, "overtaken", days=8) == [rebuild, []]
    send(medusa, "overtaken", 9)
    assert expiring(medusa, "overtaken", days=3) == [[], []]
    assert expiring(medusa, "overtaken", days=4) == [[(topic, Use.UNREAD, Cause.AGE)]] * 2
    medusa.admin.delete_records(topic, {0: Offset(10)})
    assert expiring(medusa, "overtaken", days=0) == [[(topic, Use.UNREAD, Cause.REMOVED)]] * 2
    for box in BOXES:
        resume(name, FragmentName(box), medusa.catalog)
    for box in BOXES:
        status = medusa.await_state("overtaken", box, LaneState.FAILED)
        error = status.last_error
        assert "topic overtaken-in, partition 0: the records from offset 3 on were removed" in error
        assert "the topic begins at 10 now (20" in error
        assert "retention.ms" in error
        assert status.records_in == 3
        assert f"--state {box}=empty" in error
    assert len(medusa.records("local.overtaken.kept")) == 3
    chosen = Choices(named={FragmentName(box): OnChange.EMPTY for box in BOXES})
    medusa.deploy(DOCUMENT.format(name="overtaken"), {"reading.avsc": READING}, chosen)
    medusa.wait_for(
        partial(has_read, medusa, "overtaken", 5), "the rest is read", within_s=WITHIN_S
    )
    rest = [reading["value"] for reading in readings(9)[7:]]
    kept = [row["value"] for row in medusa.decoded("local.overtaken.kept")]
    assert kept == [reading["value"] for reading in readings(3)] + rest


def test_a_rebuild_needs_the_written_dead_letters(medusa: Installation) -> None:
    """A lane continues without them; if its checkpoint is lost too, it needs a choice."""
    network, box = "letters_again", FragmentName("counts")
    dead_letter_topic = FragmentNames(FragmentId(network_id(network), box)).dead_letters
    deploy_and_read(medusa, network, 3)
    medusa.send(f"{network}-in", b"not a record", partition=0)
    medusa.wait_for(lambda: medusa.records(dead_letter_topic), "a dead letter", within_s=WITHIN_S)
    recreate(medusa, dead_letter_topic)
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

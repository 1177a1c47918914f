"""Lanes whose records in Kafka are hidden by transactions, deleted by retention, or lost."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.transactions import TransactionalWriter
from brokers.log_reader import LogReader
from brokers.records import NewTopicSpec
from pipeline.catalog.fragment_status import LaneState
from pipeline.clock import Deadline
from pipeline.dead_letters.retention import Retention
from pipeline.deploy.pause import pause, resume
from pipeline.errors import DeployError
from pipeline.ids import FragmentId, FragmentName, Offset, TopicName, TransactionalId
from pipeline.markers.codec import decode_marker, encode_marker
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames
from pipeline.planner.state import NO_CHOICES, Choices, OnChange
from pipeline.system_clock import SystemClock
from tests.system.support import READING, TIMEOUT_S, Installation, network_id, readings

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
  counts: {{aggregate: readings, window: 1s, by: [sensor], compute: {{n: count(*)}}}}
"""
BOX = FragmentName("counts")
WITHIN_S = 60.0


class Fragment:
    """A fragment that has processed three valid records and an invalid one; its window is open."""

    def __init__(self, medusa: Installation, name: str) -> None:
        self.medusa = medusa
        self.names = FragmentNames(FragmentId(network_id(name), BOX))
        self.deploy()
        medusa.await_state(name, BOX, LaneState.RUNNING)
        self.send(3)
        medusa.send(f"{name}-in", b"not a record", partition=0)
        self.await_read(4)

    def deploy(self, choices: Choices | None = None) -> None:
        """Deploy the network, optionally with choices."""
        document = DOCUMENT.format(name=self.names.network)
        self.medusa.deploy(document, {"reading.avsc": READING}, choices or NO_CHOICES)

    def send(self, count: int) -> None:
        """Send valid records."""
        topic = f"{self.names.network}-in"
        for reading in readings(count):
            value = self.medusa.encoded(f"{topic}-value", READING, reading)
            self.medusa.send(topic, value, partition=0)
        self.medusa.producer.flush(10)

    def await_read(self, count: int) -> None:
        """Wait until so many records are processed."""
        self.medusa.wait_for(partial(self._has_read, count), "all are read", within_s=WITHIN_S)

    def _has_read(self, count: int) -> bool:
        status = self.medusa.status(self.names.network.name, BOX)
        return status is not None and status.records_in == count

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the fragment during the block."""
        pause(self.names.network, BOX, self.medusa.catalog)
        self.medusa.await_state(self.names.network.name, BOX, LaneState.STOPPED)
        yield
        resume(self.names.network, BOX, self.medusa.catalog)

    def lose_checkpoint(self) -> None:
        """Delete the checkpoint."""
        shutil.rmtree(self.medusa.checkpoints(self.names.network.name) / BOX)

    def remove(self, topic: TopicName) -> None:
        """Remove all records of a topic, as retention does."""
        self.medusa.admin.delete_records(topic, self.medusa.admin.end_offsets((topic,))[topic])

    def marker(self) -> CommitMarker:
        """The last commit marker."""
        value = self.medusa.records(self.names.markers)[-1].value
        assert value is not None
        return decode_marker(value, "")

    def expire_markers(self) -> None:
        """Delete all commit markers, as a misconfigured retention does."""
        topic = self.names.markers
        policy = ConfigEntry(
            "cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[policy])
        admin = AdminClient({"bootstrap.servers": self.medusa.stack.kafka_bootstrap_servers})
        (done,) = admin.incremental_alter_configs([resource]).values()
        done.result(TIMEOUT_S)
        self.remove(topic)

    def write_marker(self, marker: CommitMarker) -> None:
        """Write a commit marker."""
        self.medusa.send(self.names.markers, encode_marker(marker), key=b"marker", partition=0)
        self.medusa.producer.flush(10)

    def refusal(self) -> str:
        """The reason for which the fragment stopped."""
        return self.medusa.await_state(self.names.network.name, BOX, LaneState.FAILED).last_error


def test_a_rebuild_without_its_dead_letters_is_refused(
    medusa: Installation,
) -> None:
    """They identify the records to leave out; with an explicit choice it continues."""
    fragment = Fragment(medusa, "letters_gone")
    assert fragment.marker().letters_from == {0: 0}
    with fragment.paused():
        fragment.lose_checkpoint()
        fragment.remove(fragment.names.dead_letters)
    message = fragment.refusal()
    assert (
        "topic local.letters_gone.counts.dlq, partition 0: the state cannot be rebuilt" in message
    )
    assert "dead letters from offset 0 on, and the topic begins at" in message
    assert "--state FRAGMENT=rebuild" in message
    fragment.deploy(Choices(named={BOX: OnChange.EMPTY}))
    fragment.send(2)
    fragment.await_read(6)


def test_retention_deletes_only_dead_letters_that_no_rebuild_needs(medusa: Installation) -> None:
    """Those that a rebuild needs are kept at any age."""
    fragment = Fragment(medusa, "letters_trimmed")
    log = LogReader(RemoteKafka(medusa.stack.kafka_bootstrap_servers), TIMEOUT_S)
    retention = Retention(fragment.names, medusa.admin, log, lambda: -60_000)
    assert retention.apply() == {}
    assert len(medusa.records(fragment.names.dead_letters)) == 1
    with fragment.paused():
        fragment.write_marker(replace(fragment.marker(), letters_from={}))
        assert retention.apply().keys() == {0}
        assert medusa.records(fragment.names.dead_letters) == []
    config = medusa.admin.topic_configs((fragment.names.dead_letters,))
    assert config[fragment.names.dead_letters]["retention.ms"] == "-1"


def test_an_empty_marker_topic_is_not_a_first_start(medusa: Installation) -> None:
    """The catalog contains that the fragment has run."""
    fragment = Fragment(medusa, "markers_gone")
    with fragment.paused():
        fragment.lose_checkpoint()
        fragment.expire_markers()
    assert "the catalog says that the fragment has run" in fragment.refusal()


def test_a_start_waits_for_open_transactions_that_hide_markers(medusa: Installation) -> None:
    """Reads of committed records end before an open transaction."""
    fragment = Fragment(medusa, "markers_hidden")
    network = fragment.names.network
    clock = SystemClock()
    other = TransactionalWriter(
        medusa.stack.kafka_bootstrap_servers, TransactionalId("hides-markers")
    )
    try:
        with fragment.paused():
            other.start(Deadline.after(clock, TIMEOUT_S, "starting"))
            other.begin()
            other.send(fragment.names.markers, b"other", b"{}", timestamp_ms=0, partition=0)
            medusa.wait_for(partial(_more, medusa, fragment.names.markers), "it is written")
        medusa.wait_for(
            lambda: (
                (s := medusa.status(network.name, BOX)) is not None
                and "a transaction that has written there is open" in s.last_error
            ),
            "it waits",
            within_s=WITHIN_S,
        )
        other.abort(Deadline.after(clock, TIMEOUT_S, "aborting"))
    finally:
        other.close()
    fragment.send(2)
    fragment.await_read(6)


def _more(medusa: Installation, topic: TopicName) -> bool:
    """Whether a transaction is open."""
    return not medusa.admin.await_decided(topic)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "output_lost",
            lambda marker: replace(marker, output_ends={0: Offset(99)}),
            "before offset 99 was written and acknowledged, but the topic ends at 0",
        ),
        (
            "input_lost",
            lambda marker: replace(
                marker,
                end={
                    at: Offset(end + 9 * (at.topic == "input_lost-in"))
                    for at, end in marker.end.items()
                },
            ),
            "before offset 13 was read, but the topic ends at 4",
        ),
    ],
)
def test_a_topic_that_ends_before_its_committed_positions_is_refused(
    medusa: Installation, name: str, change: Callable[[CommitMarker], CommitMarker], message: str
) -> None:
    """The marker's positions are after the topic's end; a choice continues with the rest."""
    fragment = Fragment(medusa, name)
    with fragment.paused():
        fragment.write_marker(change(fragment.marker()))
    found = fragment.refusal()
    assert message in found
    assert "--state counts=empty" in found
    fragment.deploy(Choices(named={BOX: OnChange.EMPTY}))
    medusa.await_state(name, BOX, LaneState.RUNNING, epoch=3)
    fragment.send(2)
    fragment.await_read(6)


def test_an_existing_topic_with_other_settings_is_refused(medusa: Installation) -> None:
    """The timestamp of a derived record is its event time; a marker must not expire."""
    settings = {
        "local.settings.counts": ("message.timestamp.type", "LogAppendTime", "CreateTime"),
        "local.settings.counts.markers": ("cleanup.policy", "delete", "compact"),
    }
    for topic, (name, value, _) in settings.items():
        medusa.admin.create_topics((NewTopicSpec(TopicName(topic), 1, 1, ((name, value),)),))
    with pytest.raises(DeployError) as caught:
        medusa.deploy(DOCUMENT.format(name="settings"), {"reading.avsc": READING})
    for topic, (name, value, needed) in settings.items():
        assert f"topic {topic} has {name}={value}, the network needs {needed}" in str(caught.value)
        assert f"--entity-name {topic} --add-config {name}={needed}" in str(caught.value)
    assert medusa.catalog.networks.get(network_id("settings")) is None

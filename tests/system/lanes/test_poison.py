"""Poison records of every kind in every share of the input; and very large records."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported unmarked
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from brokers.records import KafkaRecord, NewTopicSpec
from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from pipeline.ids import FragmentName, TopicName
from pipeline.lanes.dead_letters import PREFIX
from tests.system.support import READING, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(300), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: poison
streams:
  readings:
    topic: poison-in
    schema: poison.avsc
    event_time: at
    lateness: 1m
    silence: missing
    partitions: 2
boxes:
  kept: {map: readings, select: {sensor: sensor, share: 100 / value, at: at}}
  counts:
    aggregate: readings
    window: 10s
    by: {sensor: sensor, share: 100 / value}
    compute: {n: count(*)}
"""
LARGE = """
network: large
streams:
  readings: {topic: large-in, schema: reading.avsc, event_time: at}
boxes:
  kept: {filter: readings, where: value > 0}
  narrow: {filter: readings, where: value > 0}
outputs: {narrow: {topic: large-narrow}}
"""
HEAVY = """
network: heavy
streams:
  readings: {topic: heavy-in, schema: reading.avsc, event_time: at}
boxes:
  kept: {filter: readings, where: value > 0}
"""
AT = {"type": "long", "logicalType": "timestamp-millis"}
SCHEMA = {
    **READING,
    "fields": [*READING["fields"][:2], {"name": "at", "type": ["null", AT], "default": None}],
}
BOXES = ("kept", "counts")
WITHIN_S = 90.0
PHASE = 150
FAR_MS = 600_000
NO_TEXT = b"\xff\xfe"
SENSOR_WITHIN = 9  # the schema's id, and a text of two bytes in a field that may be null
LARGE_BYTES = 5_000_000


class Sender:
    """Sends valid and invalid readings, and records the expected results."""

    def __init__(self, medusa: Installation) -> None:
        self._medusa = medusa
        self._random = random.Random(4)
        self._start_ms = int(time.time() * 1000) - FAR_MS
        self._good = self._encoded(1, self._start_ms)
        self.sent = 0
        self.shares: Counter[tuple[bytes, float]] = Counter()
        self.windows: Counter[tuple[bytes, float, int]] = Counter()
        self.dead_letters: Counter[tuple[bytes | None, bytes | None, str]] = Counter()

    def phase(self, bad_percent: int) -> None:
        """Send a phase with evenly distributed invalid records, the n-th of the n-th kind."""
        kinds = self._bad()
        for number in range(PHASE):
            before = number * bad_percent // 100
            if (number + 1) * bad_percent // 100 > before:
                value, reason = next(kinds)
                key = None if number % 3 == 0 else str(number).encode()
                self.dead_letters[key, value, reason] += 1
                self._send(key, value)
            else:
                self._send_good(number)
        self._medusa.producer.flush(10)

    def close(self) -> None:
        """Send records that close every window so far."""
        for _ in range(2):
            at = self._start_ms + FAR_MS
            self.shares[b"a", 100.0] += 1
            self._send(None, self._encoded(1, at))
        self._medusa.producer.flush(10)

    def _send_good(self, number: int) -> None:
        value, at = (1, 2, 4)[number % 3], self._start_ms + self.sent * 50
        encoded, sensor = self._encoded(value, at), b"a"
        if number % 10 == 3:
            encoded += b"what follows a record is not looked at"
        if number % 10 == 7:
            sensor = NO_TEXT
            encoded = encoded[:5] + b"\x04" + NO_TEXT + encoded[7:]
        self.shares[sensor, 100 / value] += 1
        self.windows[sensor, 100 / value, at // 10_000 * 10_000 + 10_000] += 1
        self._send(None if number % 2 else b"k", encoded)

    def _bad(self) -> Iterator[tuple[bytes | None, str]]:
        ahead = int(time.time() * 1000) + 86_400_000
        prefix, body = self._good[:5], self._good[5:]
        while True:
            yield None, "empty_value"
            yield b"", "not_wire_format"
            yield b"plain text", "not_wire_format"
            yield b"\x00\x00\x01", "not_wire_format"
            yield b"\x00\x00\x0f\x42\x41" + body, "schema_not_found"
            yield b"\x00" + self._random.randbytes(12), "schema_not_found"
            yield self._good[:-2], "undecodable"
            yield prefix + b"\x01" + body, "undecodable"  # a text of length -1
            yield prefix + b"\x80\x80\x80\x80\x08" + body, "undecodable"  # one of a gigabyte
            yield self._encoded(1, None), "event_time_missing"
            yield self._encoded(1, ahead), "event_time_ahead"
            yield self._encoded(1, 0), "event_time_before_1970"
            yield self._encoded(0, self._start_ms), "evaluation_failed"

    def _encoded(self, value: int, at: int | None) -> bytes:
        reading = {"sensor": "a", "value": value, "at": at}
        return self._medusa.encoded("poison-in-value", SCHEMA, reading)

    def _send(self, key: bytes | None, value: bytes | None) -> None:
        self._medusa.send("poison-in", value, key=key, partition=self.sent % 2)
        self.sent += 1


def has_read(medusa: Installation, sent: int) -> bool:
    """Whether both fragments have processed so many records, without a restart."""
    found = [medusa.status("poison", box) for box in BOXES]
    assert all(status is None or not status.last_error for status in found), found
    return all(status is not None and status.records_in == sent for status in found)


def fields(medusa: Installation, record: KafkaRecord) -> tuple[bytes, dict[str, Any]]:
    """The sensor's bytes, and the row decoded with a valid text in their place."""
    assert record.value is not None
    # The sensor is in the first bytes; what follows may hold the same two bytes, as a time does.
    head, rest = record.value[:SENSOR_WITHIN], record.value[SENSOR_WITHIN:]
    no_text = NO_TEXT in head
    (row,) = medusa.decode([head.replace(NO_TEXT, b"~~") + rest])
    return (NO_TEXT if no_text else row["sensor"].encode()), row


def test_poison_records_are_dead_letters_and_do_not_affect_results(medusa: Installation) -> None:
    """Results are exact, each invalid record is a dead letter once; no lane stops."""
    medusa.deploy(DOCUMENT, {"poison.avsc": SCHEMA})
    for box in BOXES:
        medusa.await_state("poison", box, LaneState.RUNNING)
    sender = Sender(medusa)
    for bad_percent in (1, 50, 100):
        sender.phase(bad_percent)
        medusa.wait_for(
            partial(has_read, medusa, sender.sent), f"{bad_percent} % bad", within_s=WITHIN_S
        )
    sender.close()
    medusa.wait_for(
        lambda: len(medusa.records("local.poison.counts")) >= len(sender.windows),
        "all windows",
        within_s=WITHIN_S,
    )
    # A status is reported after the results it counts.
    medusa.wait_for(partial(has_read, medusa, sender.sent), "all records", within_s=WITHIN_S)
    kept = [fields(medusa, record) for record in medusa.records("local.poison.kept")]
    assert Counter((sensor, row["share"]) for sensor, row in kept) == sender.shares
    windows: Counter[tuple[bytes, float, int]] = Counter()
    for sensor, row in (fields(medusa, record) for record in medusa.records("local.poison.counts")):
        windows[sensor, row["share"], round(row["window_end"].timestamp() * 1000)] += row["n"]
    assert windows == sender.windows
    for box in BOXES:
        dead_letters = medusa.records(f"local.poison.{box}.dlq")
        reasons = [
            dict(dead_letter.headers)[f"{PREFIX}reason"] or b"" for dead_letter in dead_letters
        ]
        assert (
            Counter(
                (x.key, x.value, r.decode()) for x, r in zip(dead_letters, reasons, strict=True)
            )
            == sender.dead_letters
        )


def test_large_records_are_processed_and_stored_as_dead_letters(medusa: Installation) -> None:
    """Topics of Medusa accept them; an error names another topic and the size; none is lost."""
    wide = (("max.message.bytes", str(2 * LARGE_BYTES)),)
    topic, narrow = TopicName("large-in"), TopicName("large-narrow")
    medusa.admin.create_topics((NewTopicSpec(topic, 1, 1, wide), NewTopicSpec(narrow, 1, 1)))
    medusa.deploy(LARGE, {"reading.avsc": READING})
    now_ms = int(time.time() * 1000)
    reading = {"sensor": "x" * LARGE_BYTES, "value": 1, "at": now_ms}
    good = medusa.encoded("large-in-value", READING, reading)
    small = medusa.encoded("large-in-value", READING, {**reading, "sensor": "y"})
    bad = b"z" * LARGE_BYTES
    for value in (bad, good, small):
        medusa.send(topic, value)
    medusa.producer.flush(10)
    medusa.wait_for(
        lambda: len(medusa.records("local.large.kept")) == 2, "results", within_s=WITHIN_S
    )
    assert [len(record.value or b"") for record in medusa.records("local.large.kept")] == [
        len(good), len(small),
    ]  # fmt: skip
    assert [record.value for record in medusa.records("local.large.kept.dlq")] == [bad]

    error = medusa.await_state("large", "narrow", LaneState.FAILED).last_error
    assert f"topic large-narrow: a record of {len(good)} bytes, with headers of up to " in error
    assert "is larger than the topic takes" in error
    assert "max.message.bytes" in error
    assert medusa.records(narrow) == medusa.records("local.large.narrow.dlq") == []
    widen(medusa, narrow)
    name, box = network_id("large"), FragmentName("narrow")
    pause(name, box, medusa.catalog)
    medusa.await_state("large", "narrow", LaneState.STOPPED)
    resume(name, box, medusa.catalog)
    medusa.wait_for(lambda: len(medusa.records(narrow)) == 2, "results", within_s=WITHIN_S)
    assert [record.value for record in medusa.records("local.large.narrow.dlq")] == [bad]


@pytest.mark.second_tier("unit tests bound the bytes of a batch; large records pass above")
def test_a_backlog_of_large_records_is_read_in_batches_of_limited_bytes(
    medusa: Installation,
) -> None:
    """In one batch they would exhaust the node's memory."""
    topic, count = TopicName("heavy-in"), 300
    wide = (("max.message.bytes", str(2 * LARGE_BYTES)),)
    medusa.admin.create_topics((NewTopicSpec(topic, 1, 1, wide),))
    reading = {"sensor": "x" * (LARGE_BYTES // 2), "value": 1, "at": int(time.time() * 1000)}
    value = medusa.encoded("heavy-in-value", READING, reading)
    for number in range(count):
        medusa.send(topic, value if number % 3 else value[:-2])
    medusa.producer.flush(60)
    medusa.deploy(HEAVY, {"reading.avsc": READING})

    def done() -> bool:
        status = medusa.status("heavy", "kept")
        assert status is None or not status.last_error, status
        return status is not None and status.records_in == count

    medusa.wait_for(done, "the backlog is read", within_s=2 * WITHIN_S)
    status = medusa.await_state("heavy", "kept", LaneState.RUNNING)
    assert (status.records_out, status.dead_letters) == (count * 2 // 3, count // 3)
    assert status.epoch == 1


def widen(medusa: Installation, topic: TopicName) -> None:
    """Raise the topic's size limit as the error instructs, with Kafka's own client."""
    entry = ConfigEntry(
        "max.message.bytes",
        str(2 * LARGE_BYTES),
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": medusa.stack.kafka_bootstrap_servers})
    admin.incremental_alter_configs([resource])[resource].result(10)

"""Event time on the real stack: per partition, with idle inputs, and over a large backlog."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pytest

from pipeline.catalog.fragment_status import LaneState
from pipeline.deploy.pause import pause, resume
from schemas import avro, codec, wire
from tests.system.support import READING, Installation, network_id

pytestmark = [
    pytest.mark.system,
    pytest.mark.usefixtures("node"),
    pytest.mark.timeout(600),
]

DOCUMENT = """
network: {name}
streams:
  readings:
    topic: {name}-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    {silence}
    partitions: 3
boxes:
  counts:
    aggregate: readings
    window: 10s
    by: [sensor]
    compute: {{n: count(*), total: sum(value)}}
outputs: {{counts: {{topic: {name}-out}}}}
"""
WINDOW_MS = 10_000
MINUTE_MS = 60_000
WITHIN_S = 120.0
Sent = tuple[int, dict[str, Any]]
"""The partition, and the reading."""


class Stream:
    """One network with windows over an input of three partitions."""

    def __init__(self, medusa: Installation, name: str, silence: str) -> None:
        self.medusa, self.name = medusa, name
        self.sent: list[Sent] = []
        medusa.deploy(DOCUMENT.format(name=name, silence=silence), {"reading.avsc": READING})
        medusa.await_state(name, "counts", LaneState.RUNNING)
        self._schema = avro.parse(json.dumps(READING))
        self._id = medusa.registry.register(f"{name}-in-value", json.dumps(READING))

    def send(self, readings: Iterable[Sent]) -> None:
        """Send readings, each to its partition."""
        for partition, reading in readings:
            value = wire.join(self._id, codec.encode(self._schema, reading))
            self.medusa.send(f"{self.name}-in", value, partition=partition)
            self.sent.append((partition, reading))
        self.medusa.producer.flush(60)

    def await_read(self) -> None:
        """Wait until the lane has committed a batch that includes all sent records."""

        def read() -> bool:
            status = self.medusa.status(self.name, "counts")
            return status is not None and status.records_in >= len(self.sent)

        self.medusa.wait_for(read, "all that was sent is read", within_s=WITHIN_S)

    def results(self) -> Counter[tuple[str, int, int, int]]:
        """Sensor, end of the window, number and sum of each result."""
        return Counter(
            (row["sensor"], ms(row["window_end"]), row["n"], row["total"])
            for row in self.medusa.decoded(f"{self.name}-out")
        )

    def expected(self, until_ms: int) -> Counter[tuple[str, int, int, int]]:
        """The results of all windows that end by then."""
        groups: dict[tuple[str, int], list[int]] = {}
        for _, reading in self.sent:
            end = reading["at"] // WINDOW_MS * WINDOW_MS + WINDOW_MS
            groups.setdefault((reading["sensor"], end), []).append(reading["value"])
        return Counter(
            (sensor, end, len(values), sum(values))
            for (sensor, end), values in groups.items()
            if end <= until_ms
        )

    def await_results(self, until_ms: int) -> None:
        """Wait for all windows that end by then; no record is a dead letter."""
        expected = self.expected(until_ms)
        assert expected
        self.medusa.wait_for(
            lambda: self.results().total() >= expected.total(), "the windows", within_s=WITHIN_S
        )
        assert self.results() == expected
        assert self.medusa.records(f"local.{self.name}.counts.dlq") == []


def ms(at: datetime) -> int:
    """Milliseconds since 1970."""
    return round(at.timestamp() * 1000)


def readings(partition: int, start_ms: int, end_ms: int, step_ms: int) -> list[Sent]:
    """Readings of one partition over a span of event time."""
    return [
        (partition, {"sensor": f"s{partition}", "value": index, "at": at_ms})
        for index, at_ms in enumerate(range(start_ms, end_ms, step_ms))
    ]


def minutes_ago(minutes: int) -> int:
    """A window boundary in the past."""
    return (int(time.time() * 1000) - minutes * MINUTE_MS) // WINDOW_MS * WINDOW_MS


def test_a_lagging_partition_delays_event_time(medusa: Installation) -> None:
    """No window closes before the partition reaches its end, and none of its records is late."""
    stream = Stream(medusa, "lagging", "silence: missing")
    start_ms, end_ms = minutes_ago(10), minutes_ago(5)
    stream.send(readings(0, start_ms, end_ms, 500))
    stream.send(readings(1, start_ms, start_ms + MINUTE_MS, 500))
    stream.await_read()
    assert stream.results() == Counter()
    stream.send(readings(2, start_ms, end_ms, 700))
    stream.await_results(start_ms + MINUTE_MS - WINDOW_MS)
    stream.send(readings(1, start_ms + MINUTE_MS, end_ms, 500))
    stream.await_results(end_ms - WINDOW_MS)


def test_idle_partitions_do_not_delay_event_time(medusa: Installation) -> None:
    """An idle partition is ignored; when all are idle, the clock closes the open windows."""
    stream = Stream(medusa, "silent", "idle_after: 2s")
    start_ms = minutes_ago(1)
    stream.send(readings(0, start_ms, start_ms + 2 * WINDOW_MS + 5_000, 500))
    stream.await_results(start_ms + 3 * WINDOW_MS)


@pytest.mark.second_tier("each fault case reads a backlog after its fault, exactly")
def test_no_record_of_a_backlog_is_lost(medusa: Installation) -> None:
    """Partitions of different lengths are read at different speeds."""
    stream = Stream(medusa, "backlog", "silence: missing")
    catalog, network = medusa.catalog, network_id("backlog")
    pause(network, None, catalog)
    medusa.await_state("backlog", "counts", LaneState.STOPPED)
    start_ms, end_ms = minutes_ago(10), minutes_ago(4)
    for partition, step_ms in ((0, 1), (1, 2), (2, 50)):
        stream.send(readings(partition, start_ms, end_ms, step_ms))
    resume(network, None, catalog)
    stream.await_results(end_ms - WINDOW_MS)


PARTNERS = """
network: partners
streams:
  lefts: {topic: partners-l, schema: side.avsc, event_time: at, lateness: 5s, partitions: 2}
  rights: {topic: partners-r, schema: side.avsc, event_time: at, lateness: 5s, partitions: 1}
boxes:
  once: {deduplicate: lefts, by: [sensor, value], within: 1s}
  either:
    join: {left: lefts, right: rights, on: [sensor], within: {after: 1s}, how: full}
    select: {sensor: sensor, one: left.n, other: right.n}
  known:
    as_of: {left: lefts, right: rights, on: [sensor], within: 2s, how: left}
    select: {sensor: sensor, one: left.n, other: right.n}
outputs:
  once: {topic: partners-once}
  either: {topic: partners-either}
  known: {topic: partners-known}
"""
SIDE = {
    **READING,
    "name": "Side",
    "fields": [
        {"name": "sensor", "type": ["null", "string"]},
        {"name": "n", "type": "int"},
        *READING["fields"][1:],
    ],
}
LEFTS = (
    # partition, sensor, value, ms; in the order of arrival, and so of `n`
    (0, "ash", 1, 1_000),
    (0, "ash", 1, 0),
    (0, "ash", 1, 2_001),
    (1, "birch", 2, 500),
    (0, "birch", 2, 500),
    (0, None, 3, 0),
    (0, None, 3, 1),
)
RIGHTS = ((0, "ash", 1, 0), (0, "cedar", 1, 7), (0, None, 1, 0))


def test_joins_emit_rows_when_no_partner_can_arrive(medusa: Installation) -> None:
    """The first of duplicates, the latest version before a row; null keys match nothing."""
    medusa.deploy(PARTNERS, {"side.avsc": SIDE})
    boxes = ("once", "either", "known")
    for box in boxes:
        medusa.await_state("partners", box, LaneState.RUNNING)
    start = int(time.time()) * 1000 - MINUTE_MS

    def send(side: str, n: int, row: tuple[int, str | None, int, int]) -> None:
        partition, sensor, value, after = row
        fields = {"sensor": sensor, "n": n, "value": value, "at": start + after}
        topic = f"partners-{side}"
        data = medusa.encoded(f"{topic}-value", SIDE, fields)
        medusa.send(topic, data, key=f"key {n}".encode(), partition=partition)

    for side, given in (("l", LEFTS), ("r", RIGHTS)):
        for n, row in enumerate(given):
            send(side, n, row)
            medusa.producer.flush(10)
    for side, partitions in (("l", 2), ("r", 1)):
        for partition in range(partitions):
            send(side, 100 + partition, (partition, f"end of {side}", 0, 30_000))
    medusa.producer.flush(10)
    for box in boxes:

        def complete(box: str = box) -> bool:
            status = medusa.status("partners", box)
            return status is not None and (status.boundary_ms or 0) >= start + 20_000

        medusa.wait_for(complete, f"{box} is complete", within_s=WITHIN_S)
    records = medusa.records("partners-once")
    rows = medusa.decode([record.value for record in records])
    kept = (1, 2, 4, 5, 6)
    assert sorted(row["n"] for row in rows) == [*kept]
    assert {record.key for record in records} == {f"key {n}".encode() for n in kept}
    found = Counter((r["sensor"], r["one"], r["other"]) for r in medusa.decoded("partners-either"))
    assert found == Counter(
        [
            ("ash", 0, 0),
            ("ash", 1, 0),
            ("ash", 2, None),
            ("birch", 3, None),
            ("birch", 4, None),
            (None, 5, None),
            (None, 6, None),
            ("cedar", None, 1),
            (None, None, 2),
        ]
    )
    known = {row["one"]: row["other"] for row in medusa.decoded("partners-known")}
    assert known == {0: 0, 1: 0, **dict.fromkeys(range(2, 7))}

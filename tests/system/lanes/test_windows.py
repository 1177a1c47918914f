"""Windows on the real stack: failed results and late records are dead letters with reasons."""

import json
import time
from typing import Any

import pytest

from pipeline.catalog.fragment_status import LaneState
from tests.system.support import READING, Installation

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node")]

DOCUMENT = """
network: windows
streams:
  readings:
    topic: windows-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 1s
    partitions: 1
boxes:
  means:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*), inverse: 100 / sum(value)}
outputs: {means: {topic: windows-out}}
"""
WITHIN_S = 120.0


def test_failed_results_and_late_records_are_dead_letters_with_reasons(
    medusa: Installation,
) -> None:
    """They contain the place in the document or the times compared; other results are published."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    medusa.await_state("windows", "means", LaneState.RUNNING)
    start = int(time.time()) * 1000 - 60_000

    def send(sensor: str, value: int, at: int) -> None:
        reading = {"sensor": sensor, "value": value, "at": at}
        medusa.send("windows-in", medusa.encoded("windows-in-value", READING, reading))
        medusa.producer.flush(10)

    def reports(count: int) -> list[dict[str, str]]:
        medusa.wait_for(
            lambda: len(medusa.records("local.windows.means.dlq")) >= count,
            f"{count} dead letters",
            within_s=WITHIN_S,
        )
        dead_letters = medusa.records("local.windows.means.dlq")
        return [{key: (value or b"").decode() for key, value in x.headers} for x in dead_letters]

    send("fine", 4, start)
    send("zero", 0, start)
    send("fine", 1, start + 30_000)
    (failed,) = reports(1)
    assert failed["medusa.error.reason"] == "evaluation_failed"
    assert failed["medusa.error.box"] == "means"
    assert failed["medusa.error.field"] == "compute.inverse"
    assert failed["medusa.error.message"] == (
        "compute.inverse cannot be computed: 100 / sum(value)"
    )
    assert "medusa.error.offset" not in failed
    (dead_letter,) = medusa.records("local.windows.means.dlq")
    assert dead_letter.value is not None
    assert json.loads(dead_letter.value)["sensor"] == "zero"
    assert [row["inverse"] for row in medusa.decoded("windows-out")][:1] == [25.0]

    send("late", 1, start)
    (late,) = (headers for headers in reports(2) if headers["medusa.error.reason"] == "late")
    assert late["medusa.error.event_time"] == str(start)
    assert int(late["medusa.error.closed"]) > start + 1_000
    assert late["medusa.error.message"].endswith("was closed")
    assert late["medusa.error.offset"] == "3"


SLIDING = """
network: rolling
streams:
  readings:
    topic: rolling-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    silence: missing
    partitions: 1
boxes:
  counts:
    aggregate: readings
    window: {size: 2s, slide: 1s}
    compute: {n: count(*), most: max(value)}
  best: {top: readings, rows: 2, highest: value, window: {size: 2s, slide: 1s}, select: [value]}
outputs: {counts: {topic: rolling-out}, best: {topic: rolling-best}}
"""


def test_a_record_is_counted_in_each_of_its_open_windows(medusa: Installation) -> None:
    """A partly late record is counted in the last window, and a dead letter reports it."""
    medusa.deploy(SLIDING, {"reading.avsc": READING})
    for fragment in ("counts", "best"):
        medusa.await_state("rolling", fragment, LaneState.RUNNING)
    start = int(time.time()) * 1000 - 60_000

    def send(value: int, after_ms: int) -> None:
        reading = {"sensor": "any", "value": value, "at": start + after_ms}
        medusa.send("rolling-in", medusa.encoded("rolling-in-value", READING, reading))
        medusa.producer.flush(10)

    def results(topic: str, count: int, *columns: str) -> list[tuple[int, ...]]:
        medusa.wait_for(
            lambda: len(medusa.records(topic)) >= count,
            f"{count} results in {topic}",
            within_s=WITHIN_S,
        )
        ends = [record.timestamp_ms - start for record in medusa.records(topic)]
        rows = zip(ends, medusa.decoded(topic), strict=True)
        return sorted((end, *(row[column] for column in columns)) for end, row in rows)

    send(1, 0)
    send(2, 10_000)
    assert results("rolling-out", 2, "n", "most") == [(1_000, 1, 1), (2_000, 1, 1)]
    assert results("rolling-best", 2, "rank", "value") == [(1_000, 1, 1), (2_000, 1, 1)]
    send(3, 9_300)
    send(4, 5_000)
    send(5, 30_000)
    assert results("rolling-out", 4, "n", "most")[2:] == [(11_000, 2, 3), (12_000, 1, 2)]
    assert results("rolling-best", 5, "rank", "value")[2:] == [
        (11_000, 1, 3),
        (11_000, 2, 2),
        (12_000, 1, 2),
    ]
    for topic in ("local.rolling.counts.dlq", "local.rolling.best.dlq"):
        dead_letters = [dict(dead_letter.headers) for dead_letter in medusa.records(topic)]
        reports = {x["medusa.error.offset"]: x["medusa.error.reason"] for x in dead_letters}
        assert reports == {b"2": b"partly_late", b"3": b"late"}
        assert {x["medusa.error.closed"] for x in dead_letters} == {str(start + 10_000).encode()}


SESSIONS = """
network: visits
streams:
  readings:
    topic: visits-in
    schema: reading.avsc
    event_time: at
    lateness: 0s
    silence: missing
    partitions: 1
boxes:
  visits:
    aggregate: readings
    session: {gap: 2s, longest: 10s}
    compute: {n: count(*), values: count(DISTINCT value)}
outputs: {visits: {topic: visits-out}}
"""


def test_a_session_ends_after_its_gap_and_excludes_late_records(
    medusa: Installation,
) -> None:
    """It is split at its maximum length; a late record's dead letter contains its event time."""
    medusa.deploy(SESSIONS, {"reading.avsc": READING})
    medusa.await_state("visits", "visits", LaneState.RUNNING)
    start = int(time.time()) // 10 * 10_000 - 60_000

    def send(*after_ms: int) -> None:
        for after in after_ms:
            reading = {"sensor": "any", "value": after, "at": start + after}
            medusa.send("visits-in", medusa.encoded("visits-in-value", READING, reading))
        medusa.producer.flush(10)

    def results(count: int) -> list[tuple[int, int, int]]:
        medusa.wait_for(
            lambda: len(medusa.records("visits-out")) >= count,
            f"{count} sessions",
            within_s=WITHIN_S,
        )
        ends = [record.timestamp_ms - start for record in medusa.records("visits-out")]
        rows = medusa.decoded("visits-out")
        return sorted((end, r["n"], r["values"]) for end, r in zip(ends, rows, strict=True))

    send(0, 2_000, 2_000, 4_001, 9_500, 10_500)
    assert results(2) == [(4_000, 3, 2), (6_001, 1, 1)]
    send(9_000, 12_000, 30_000)
    assert results(4)[2:] == [(11_500, 1, 1), (14_000, 2, 2)]
    (dead_letter,) = [
        dict(dead_letter.headers) for dead_letter in medusa.records("local.visits.visits.dlq")
    ]
    assert dead_letter["medusa.error.reason"] == b"late"
    assert dead_letter["medusa.error.closed"] == str(start + 10_499).encode()


TIES = """
network: ties
streams:
  lists:
    topic: in-ties
    schema: list.avsc
    event_time: at
    lateness: 0s
    idle_after: 1s
    partitions: 2
boxes:
  parts: {flat_map: lists, each: {label: "split(labels, ',')"}, select: {label: label}}
  whole: {map: lists, select: {label: "concat('all ', labels)"}}
  all: {union: [parts, whole]}
  ends:
    aggregate: all
    window: 1s
    compute:
      n: count(*)
      opened: first(label)
      closed: last(label)
      last_part: last(label) FILTER (WHERE length(label) = 1)
      longest: max_by(label, length(label))
      spread: stddev(length(label))
      middle: median(length(label))
      about: approx_percentile(length(label), 0.5)
  visits:
    aggregate: all
    session: 1s
    compute: {opened: first(label), middle: median(length(label)), spread: stddev(length(label))}
outputs: {ends: {topic: ties-out}, visits: {topic: ties-visits}}
"""
LABELS = {
    "type": "record",
    "name": "Labels",
    "fields": [
        {"name": "labels", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def test_equal_event_times_are_ordered_by_log_position(medusa: Installation) -> None:
    """By topic, partition, offset and path through the network, not by the time of reading.

    The elements of the lists are in a separate topic, which sorts after that of the lists.
    """
    medusa.deploy(TIES, {"list.avsc": LABELS})
    medusa.await_state("ties", "ends", LaneState.RUNNING)
    medusa.await_state("ties", "visits", LaneState.RUNNING)
    start = int(time.time()) * 1000 - 60_000
    for partition, labels, after_ms in (
        (1, "x,y", 0),
        (0, "u,v", 0),
        (0, "w", 9_000),
        (1, "z", 9_000),
    ):
        value = medusa.encoded("in-ties-value", LABELS, {"labels": labels, "at": start + after_ms})
        medusa.send("in-ties", value, partition=partition)
        medusa.producer.flush(10)

    def first_of(topic: str) -> dict[str, Any]:
        """The row of least event time; later ones, without a key, can be in any partition."""
        medusa.wait_for(lambda: medusa.records(topic) != [], f"a row in {topic}", within_s=WITHIN_S)
        first = min(medusa.records(topic), key=lambda record: record.timestamp_ms)
        row: dict[str, Any]
        (row,) = medusa.decode([first.value])
        return row

    row, visit = first_of("ties-out"), first_of("ties-visits")
    reports = {name: row[name] for name in ("n", "opened", "closed", "last_part", "longest")}
    assert reports == {
        "n": 6,
        "opened": "all u,v",
        "closed": "y",
        "last_part": "y",
        "longest": "all x,y",
    }
    assert (row["spread"], row["middle"], row["about"]) == (pytest.approx(9.6**0.5), 1.0, 0.99)
    assert {name: visit[name] for name in ("opened", "middle", "spread")} == {
        name: row[name] for name in ("opened", "middle", "spread")
    }

"""Replay on the real stack: late records are included, a killed run publishes nothing."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from brokers.kafka.transactions import TransactionalWriter
from brokers.records import KafkaRecord, NewTopicSpec
from pipeline.catalog.fragment_status import LaneState
from pipeline.cli.main import run
from pipeline.clock import Deadline, rfc3339
from pipeline.errors import FencedError
from pipeline.ids import FragmentId, FragmentName, Offset, TopicName
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID
from pipeline.names import FragmentNames
from pipeline.system_clock import SystemClock
from tests.system.support import READING, Installation, network_id

pytestmark = [pytest.mark.system, pytest.mark.timeout(900), pytest.mark.usefixtures("node")]

DOCUMENT = """
network: again
streams:
  readings:
    topic: again-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    ahead: 1s
    idle_after: 1h
    partitions: 2
boxes:
  counts:
    aggregate: readings
    window: 10s
    by: [sensor]
    compute: {n: count(*), total: sum(value)}
  many: {filter: counts, where: n > 1}
  sums: {aggregate: readings, window: 10s, by: [sensor], compute: {n: count(*), total: sum(value)}}
  odd: {filter: readings, where: value % 2 = 1}
  even: {filter: readings, where: value % 2 = 0}
  pairs:
    join: {left: odd, right: even, on: [sensor], within: 4s}
    select: {sensor: left.sensor, a: left.value, b: right.value}
  known:
    as_of: {left: odd, right: even, on: [sensor], within: 4s}
    select: {sensor: sensor, a: left.value, b: right.value}
outputs:
  counts: {topic: again-counts, partitions: 3}
  many: {topic: again-many, corrections: true}
  sums: {topic: again-sums, partitions: 3, corrections: true}
  pairs: {topic: again-pairs, corrections: true}
  known: {topic: again-known, corrections: true}
"""
FRAGMENTS = ("counts", "many", "sums", "pairs", "known")
NEWER = {
    **READING,
    "fields": [*READING["fields"], {"name": "again", "type": "string", "default": "x"}],
}
ODD_ONE = 60
"""The value of the reading whose schema is in no subject of the input."""
WITHIN_S = 150.0
REPLAY_S = 300.0
SIZE_MS = 10_000
SPAN_MS = 4_000
Reading = tuple[str, int, int]
"""Sensor, value, event time in milliseconds."""
Replay = Callable[..., Any]


def words(medusa: Installation, *arguments: str) -> list[str]:
    """Arguments of `medusa replay` for the stack."""
    settings = {
        "data": str(medusa.folder / "replays"),
        "kafka.bootstrap_servers": medusa.stack.kafka_bootstrap_servers,
        "zookeeper.connect": medusa.stack.zookeeper_connect,
        "registry.url": medusa.stack.registry_url,
        "cache": str(medusa.stack.cache),
    }
    return ["replay", *arguments, "-o", "json", *(f"--set={k}={v}" for k, v in settings.items())]


def command(medusa: Installation, *arguments: str) -> list[str]:
    """Command line of a `medusa replay` process."""
    return [sys.executable, "-P", "-m", "pipeline.cli.main", *words(medusa, *arguments)]


@pytest.fixture
def replay(medusa: Installation, capsys: pytest.CaptureFixture[str]) -> Replay:
    """Runs `medusa replay` in this process; returns its JSON output.

    Spark sessions of one process share a Java process, which takes seconds to start.
    """

    def call(*arguments: str, code: int = 0) -> Any:
        capsys.readouterr()
        found = run(words(medusa, *arguments))
        captured = capsys.readouterr()
        assert found == code, captured.err
        return json.loads(captured.out)

    return call


@pytest.fixture
def replay_command(medusa: Installation) -> Replay:
    """Runs `medusa replay` in a separate process, as users do."""

    def call(*arguments: str) -> Any:
        done = subprocess.run(
            command(medusa, *arguments),
            capture_output=True,
            text=True,
            timeout=REPLAY_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout)

    return call


@pytest.fixture(scope="module")
def readings(medusa: Installation) -> list[Reading]:
    """Readings that the network has processed; one of sensor `a` is late, another one is text."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    for fragment in FRAGMENTS:
        medusa.await_state("again", fragment, LaneState.RUNNING)
    base = int(time.time()) // 10 * 10_000 - 300_000
    sent = [("ab"[i // 2 % 2], i, base + i * 500) for i in range(160)]
    _send(medusa, sent)
    medusa.send("again-in", b"plain text", partition=1)
    _send(medusa, [(sensor, 0, base + 200_000) for sensor in "ab"])
    _await_boundary(medusa, base + 190_000)
    late = ("a", 1_000_000, base + 15_000)
    _send(medusa, [late])
    _send(medusa, [(sensor, 1, base + 220_000) for sensor in "ab"])
    medusa.wait_for(
        lambda: len(medusa.records("local.again.counts.dlq")) == 2,
        "a late record",
        within_s=WITHIN_S,
    )
    _await_boundary(medusa, base + 210_000)
    return [*sent, late]


def _send(medusa: Installation, readings: list[Reading]) -> None:
    for sensor, value, at in readings:
        reading = {"sensor": sensor, "value": value, "at": at}
        if value == ODD_ONE:
            data = medusa.encoded("again-other-value", NEWER, {**reading, "again": "y"})
        else:
            data = medusa.encoded("again-in-value", READING, reading)
        medusa.send("again-in", data, partition=ord(sensor) % 2, timestamp_ms=at)
    medusa.producer.flush(10)


def _await_boundary(medusa: Installation, at_ms: int) -> None:
    def passed() -> bool:
        found = [medusa.status("again", f) for f in FRAGMENTS]
        return all(s is not None and (s.boundary_ms or 0) >= at_ms for s in found)

    medusa.wait_for(passed, "event time has passed", within_s=WITHIN_S)


def _windows(rows: list[Any]) -> list[tuple[str, int, int, int]]:
    return sorted((r["sensor"], _ms(r["window_end"]), r["n"], r["total"]) for r in rows)


def _ms(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _expected(readings: list[Reading], from_ms: int, until_ms: int) -> list[Any]:
    """Sequentially computed results of every window that overlaps the interval."""
    counts: Counter[tuple[str, int]] = Counter()
    totals: Counter[tuple[str, int]] = Counter()
    for sensor, value, at in readings:
        end = at // SIZE_MS * SIZE_MS + SIZE_MS
        counts[sensor, end] += 1
        totals[sensor, end] += value
    return sorted(
        (sensor, end, n, totals[sensor, end])
        for (sensor, end), n in counts.items()
        if end > from_ms and end - SIZE_MS < until_ms
    )


def _record(record: KafkaRecord) -> tuple[Any, ...]:
    return record.partition, record.timestamp_ms, record.key, record.value


def test_windows_of_a_replay_include_late_records(
    medusa: Installation, replay: Replay, replay_command: Replay, readings: list[Reading]
) -> None:
    """They equal a sequential computation, in order, with the lane's keys and partitions."""
    base = readings[0][2]
    before = medusa.records("again-counts")
    interval = ("--from", rfc3339(base + 12_000), "--to", rfc3339(base + 55_000))
    dry = replay("again.counts", *interval)
    assert (dry["dry_run"], dry["into"]) == (True, "again-counts.replay-1")
    assert (dry["late_counted_in"], dry["dead_letters_judged_again"]) == (1, 1)
    assert dry["input_from"] == rfc3339(base + 10_000)
    assert dry["results_from"] == rfc3339(base + 20_000)
    assert TopicName("again-counts.replay-1") not in medusa.admin.topic_names()
    done = replay_command("again.counts", *interval, "--yes")
    expected = _expected(readings, base + 12_000, base + 55_000)
    assert done["written"] == len(expected)
    assert (done["left_out"], done["failed_results"]) == ({"not_wire_format": 1}, {})
    found = medusa.records("again-counts.replay-1")
    assert _windows(medusa.decoded("again-counts.replay-1")) == expected
    for partition in range(3):
        times = [r.timestamp_ms for r in found if r.partition == partition]
        assert times == sorted(times)
    in_lane = {_record(r) for r in before}
    differing = [r for r in found if _record(r) not in in_lane]
    assert [r.timestamp_ms for r in differing] == [base + 20_000]
    assert {(r.partition, r.key) for r in found} <= {(r.partition, r.key) for r in before}
    assert medusa.records("again-counts") == before
    assert medusa.status("again", "counts").state is LaneState.RUNNING  # type: ignore[union-attr] # it runs


OTHER_KIND = pytest.mark.second_tier(
    "the same as for pairs, of a box that other tests of lanes run"
)


@pytest.mark.parametrize(
    "box",
    [
        "pairs",
        pytest.param("known", marks=OTHER_KIND),
        pytest.param("many", marks=OTHER_KIND),
    ],
)
def test_a_replay_gives_the_same_results(
    medusa: Installation, replay: Replay, readings: list[Reading], box: str
) -> None:
    """A join also reads the records its bound reaches back to; a stateless box, the interval."""
    base = readings[0][2]
    start, end = base + 20_000, base + 60_000
    interval = ("--from", rfc3339(start), "--to", rfc3339(end), "--yes")
    replay(f"again.{box}", *interval, "--into", f"{box}-once-more")
    lane = [_record(r) for r in medusa.records(f"again-{box}") if start <= r.timestamp_ms < end]
    found = [_record(r) for r in medusa.records(f"{box}-once-more")]
    assert found
    assert Counter(found) == Counter(lane)
    refused = replay(f"again.{box}", *interval, "--into", f"{box}-once-more", code=65)
    assert "it holds records" in refused["error"]["message"]


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().encode()


def _by_id(records: list[KafkaRecord]) -> dict[bytes | None, KafkaRecord]:
    """The last record of each id."""
    return {dict(record.headers)[RESULT_ID]: record for record in records}


def test_corrections_add_late_records_to_a_published_output(
    medusa: Installation, replay: Replay, readings: list[Reading]
) -> None:
    """The window of a late record is corrected once; the last record per id is then correct."""
    base = readings[0][2]
    interval = ("--from", rfc3339(base), "--to", rfc3339(base + 55_000), "--as-corrections")
    before = medusa.records("again-sums")
    done = replay("again.sums", *interval, "--yes")
    assert (done["changed"], done["added"], done["removed"]) == (1, 0, 0)
    records = medusa.records("again-sums")
    (correction,) = [record for record in records if CORRECTION in dict(record.headers)]
    headers = dict(correction.headers)
    assert headers[CORRECTION] == b"1"
    assert headers[RESULT_ID] == str(base + 20_000).encode() + b"/" + _md5(b'{"sensor":"a"}')
    (old,) = [r for r in before if dict(r.headers)[RESULT_ID] == headers[RESULT_ID]]
    assert (old.key, old.partition, old.timestamp_ms) == (
        correction.key, correction.partition, base + 20_000,
    )  # fmt: skip
    merged = _by_id(records)
    rows = medusa.decode(
        [record.value for record in merged.values() if base < record.timestamp_ms <= base + 60_000]
    )
    assert _windows(rows) == _expected(readings, base, base + 60_000)
    again = replay("again.sums", *interval, "--yes")
    assert (again["changed"], again["added"], again["removed"]) == (0, 0, 0)


@pytest.mark.second_tier("the first tier corrects windows; of pairs only the ids differ")
def test_corrections_add_the_pairs_of_a_late_record(
    medusa: Installation, replay: Replay, readings: list[Reading]
) -> None:
    """Lane and replay compute the same id for a pair, and for a single record."""
    base = readings[0][2]
    interval = ("--from", rfc3339(base), "--to", rfc3339(base + 60_000), "--as-corrections")
    sensor, late, at = readings[-1]
    partners = [
        value
        for s, value, time_ms in readings[:-1]
        if s == sensor and value % 2 == 1 and abs(time_ms - at) <= SPAN_MS
    ]
    done = replay("again.pairs", *interval, "--yes")
    assert (done["changed"], done["added"], done["removed"]) == (0, len(partners), 0)
    records = [r for r in medusa.records("again-pairs") if CORRECTION in dict(r.headers)]
    added = medusa.decode([record.value for record in records])
    assert sorted((row["a"], row["b"]) for row in added) == [(v, late) for v in sorted(partners)]
    nothing = replay("again.many", *interval)
    assert (nothing["dry_run"], nothing["changed"], nothing["added"]) == (True, 0, 0)
    assert nothing["removed"] == 0
    assert nothing["offsets"] > 0


def test_a_replay_can_start_at_the_event_time_of_a_record(
    replay: Replay, readings: list[Reading]
) -> None:
    """Also of an external stream whose event time is an expression."""
    of_b = [r for r in readings if ord(r[0]) % 2 == 0]
    found = replay("again.pairs", "--from", "again-in/0/7")
    assert found["results_from"] == rfc3339(of_b[7][2])
    assert found["input_from"] == rfc3339(of_b[7][2] - 4_000)


def test_a_killed_replay_publishes_nothing_and_can_be_repeated(
    medusa: Installation, replay: Replay, readings: list[Reading]
) -> None:
    """Killed while it computes, or amid its transaction, which the next run aborts."""
    base, into = readings[0][2], TopicName("again-cut-off")
    interval = ("--from", rfc3339(base), "--to", rfc3339(base + 50_000))
    arguments = ("again.counts", *interval, "--into", into, "--yes")
    with subprocess.Popen(
        command(medusa, *arguments),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert any(b"computing" in line for line in process.stderr)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    if into in medusa.admin.topic_names():
        assert medusa.records(into) == []
    clock = SystemClock()
    names = FragmentNames(FragmentId(network_id("again"), FragmentName("counts")))
    medusa.admin.create_topics((NewTopicSpec(into, 3, 1),))
    half = TransactionalWriter(
        medusa.stack.kafka_bootstrap_servers, names.replayer(into), transaction_ms=600_000
    )
    try:
        half.start(Deadline.after(clock, WITHIN_S, "starting"))
        half.begin()
        half.send(into, b"k", b"half", timestamp_ms=base, partition=1)
        assert medusa.records(into) == []
        assert replay(*arguments)["written"] == len(_expected(readings, base, base + 50_000))
        with pytest.raises(FencedError):
            half.commit(Deadline.after(clock, WITHIN_S, "committing"))
    finally:
        half.close()
    assert _windows(medusa.decoded(into)) == _expected(readings, base, base + 50_000)


def test_a_replay_of_deleted_records_is_refused_with_position_and_time(
    medusa: Installation, replay: Replay, readings: list[Reading]
) -> None:
    """A later start is accepted, and so is an explicit choice of the rest, which is reported."""
    base = readings[0][2]
    of_b = [r for r in readings if ord(r[0]) % 2 == 0]
    medusa.admin.delete_records(TopicName("again-in"), {0: Offset(40)})
    refused = replay("again.counts", "--from", rfc3339(base), code=65)["error"]
    assert refused["place"] == "topic again-in, partition 0"
    assert "begins at offset 40" in refused["message"]
    assert "--incomplete" in refused["hint"]
    left = replay("again.counts", "--from", rfc3339(base), "--incomplete")
    assert [one["incomplete"] for one in left["reads"]] == [True, False]
    later = replay("again.counts", "--from", rfc3339(of_b[40][2] + 21_000))
    assert [one["incomplete"] for one in later["reads"]] == [False, False]

"""The judge over whole histories of a lane that counts readings."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from brokers.records import Headers, KafkaRecord
from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    Offset,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.markers.codec import encode_boundary, encode_marker
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition
from pipeline.markers.signals import BoundaryRecord, activity_key
from tests.faults.cases import CASES
from tests.faults.history import Fate, Kind, Place, Sent
from tests.faults.judge import FragmentTopics, History, agents, judge, without_agents
from tests.faults.reads import Reads, check_writers
from tests.faults.segments import Batch, Log, Outcome
from tests.faults.values import counts
from tests.unit.lanes.marked import marked

IN = TopicName("net-readings")
TOPICS = FragmentTopics(
    name=FragmentName("counts"),
    output=TopicName("net-counts"),
    boundaries=TopicName("net-counts.boundaries"),
    dead_letters=TopicName("net.counts.dlq"),
    markers=TopicName("net.counts.markers"),
    reads=frozenset({IN}),
)
AT_MS = (1_100, 1_900, 2_500)


def decode(record: KafkaRecord) -> dict[str, Any]:
    """Values of these tests are JSON; instants have the types of Avro."""
    fields: dict[str, Any] = json.loads(record.value or b"{}")
    for name in ("window_start", "window_end"):
        if name in fields:
            fields[name] = datetime.fromtimestamp(fields[name] / 1_000, UTC)
    return fields


def kafka(
    topic: TopicName, offset: int, value: bytes | None, at_ms: int, headers: Headers = ()
) -> KafkaRecord:
    """A record in partition 0."""
    return KafkaRecord(topic, 0, Offset(offset), Millis(at_ms), b"k", value, headers)


def sent() -> tuple[Sent, ...]:
    """Three good readings and then a bad one."""
    good = [
        Sent(
            place=Place(IN, 0, offset),
            stream=StreamName("readings"),
            fate=Fate.GOOD,
            key=b"k",
            value=b"%d" % offset,
            timestamp_ms=at_ms,
            fields={"sensor": "ash", "number": offset, "value": 10 + offset, "at": at_ms},
        )
        for offset, at_ms in enumerate(AT_MS)
    ]
    bad = replace(good[0], place=Place(IN, 0, 3), fate=Fate.BAD, value=None, fields=None)
    return (*good, bad)


def result(offset: int, end_ms: int, n: int, total: int) -> KafkaRecord:
    """A row of the output."""
    row = {"sensor": "ash", "window_start": end_ms - 1_000, "window_end": end_ms, "n": n}
    most = {1_000 + 1_000: 11, 3_000: 12}.get(end_ms, 0)
    value = json.dumps({**row, "total": total, "most": most}).encode()
    return kafka(TOPICS.output, offset, value, end_ms)


def dead_letter() -> KafkaRecord:
    """The dead letter of the bad reading."""
    headers = tuple(
        (f"medusa.error.{name}", value)
        for name, value in (
            ("reason", b"empty_value"),
            ("topic", IN.encode()),
            ("partition", b"0"),
            ("offset", b"3"),
        )
    )
    return kafka(TOPICS.dead_letters, 0, None, AT_MS[0], headers)


def marker(offset: int, batch: int, at: int, totals: Totals, epoch: int = 1) -> KafkaRecord:
    """A commit marker that ends at an offset of the input."""
    place = InputPartition(StreamName("readings"), IN, 0)
    value = CommitMarker(
        epoch=Epoch(epoch),
        incarnation=Incarnation("1-0"),
        batch=BatchId(batch),
        start={place: Offset(0)},
        end={place: Offset(at)},
        needed={place: Offset(0)},
        late_ms=None,
        eviction_ms=None,
        progress={},
        late_settled=BatchId(batch),
        boundary_ms=None,
        totals=totals,
        written_at_ms=Millis(batch),
        state="digest",
        sources=marked({place: 0}),
    )
    return kafka(TOPICS.markers, offset, encode_marker(value), batch)


def boundary(offset: int, t: int, position: int) -> KafkaRecord:
    """A boundary of the output."""
    record = BoundaryRecord(
        TopicId("an id"), "local.net.counts", Epoch(1), Millis(t), {0: Offset(position)}
    )
    return kafka(TOPICS.boundaries, offset, encode_boundary(record), t)


def log(topic: TopicName, *parts: tuple[int, int, Outcome | None], guarded: bool = True) -> Log:
    """A log of the given parts: (first, last, kind of transaction marker)."""
    return Log(topic, 0, tuple(Batch(f, t, 5, 0, guarded, o) for f, t, o in parts))


def history(*changed: KafkaRecord, without: tuple[KafkaRecord, ...] = ()) -> History:
    """The history of a correct lane, with some records replaced or removed."""
    records = [
        *(kafka(IN, one.place.offset, one.value, one.timestamp_ms) for one in sent()),
        marker(0, -1, 0, Totals()),
        marker(2, 0, 4, Totals(records_in=4, records_out=2, dead_letters=1)),
        boundary(0, 2_999, 2),
        dead_letter(),
        result(0, 2_000, 2, 21),
        result(1, 3_000, 1, 12),
    ]
    found = {(r.topic, r.offset): r for r in (*records, *changed)}
    for record in without:
        del found[record.topic, record.offset]
    committed = tuple(found.values())
    end = Outcome.COMMIT
    logs = (
        log(IN, (0, 3, None), guarded=False),
        log(TOPICS.markers, (0, 0, None), (1, 1, end), (2, 2, None), (3, 3, end)),
        log(TOPICS.output, (0, 1, None), (2, 2, end)),
        log(TOPICS.dead_letters, (0, 0, None), (1, 1, end)),
        log(TOPICS.boundaries, (0, 0, None), guarded=False),
    )
    compacted = frozenset({TOPICS.markers, TOPICS.boundaries})
    reads = Reads(logs, committed, committed, committed, compacted)
    return History(sent(), (TOPICS,), reads)


def test_a_correct_history_is_exact() -> None:
    """All checks together find nothing, and count all records."""
    verdict = judge(CASES["window"], "net", history(), decode)
    assert verdict.findings == ()
    assert (verdict.sent, verdict.refused, verdict.expected, verdict.aborted) == (4, 1, 2, 0)


@pytest.mark.parametrize(
    ("changed", "kinds"),
    [
        (result(1, 3_000, 1, 99), {Kind.DIFFERENT}),
        (result(1, 2_000, 2, 21), {Kind.LOST, Kind.DUPLICATED}),
        (marker(2, 0, 4, Totals(4, 3, 1)), {Kind.MARKER}),
        (marker(2, 0, 4, Totals(4, 2, 1), epoch=0), {Kind.ZOMBIE}),
        (boundary(0, 3_000, 1), {Kind.PROMISE}),
        (replace(dead_letter(), value=b"?"), {Kind.DIFFERENT}),
        (kafka(IN, 1, b"?", AT_MS[1]), {Kind.INPUT}),
    ],
)
def test_each_part_of_a_history_is_checked(changed: KafkaRecord, kinds: set[Kind]) -> None:
    """Values, markers, epochs, boundaries, dead letters and inputs."""
    verdict = judge(CASES["window"], "net", history(changed), decode)
    assert set(counts(verdict.findings)) == kinds


def test_a_result_that_is_committed_but_not_read_is_lost_and_unseen() -> None:
    """It differs from the reference, the marker's count and the broker's log."""
    gone = history(without=(result(1, 3_000, 1, 12),))
    verdict = judge(CASES["window"], "net", gone, decode)
    assert set(counts(verdict.findings)) == {Kind.LOST, Kind.UNSEEN, Kind.MARKER}


def test_a_refused_reading_counts_in_no_result() -> None:
    """Records of dead letters are excluded: the same output is then one too many."""
    late = {"reason": b"late", "offset": b"2", "event_time": b"2500", "closed": b"2600"}
    headers = dict(dead_letter().headers) | {
        f"medusa.error.{name}": value for name, value in late.items()
    }
    second = kafka(TOPICS.dead_letters, 1, b"2", AT_MS[2], tuple(headers.items()))
    found = counts(judge(CASES["window"], "net", history(second), decode).findings)
    assert found[Kind.UNEXPECTED] == 1
    assert found[Kind.LATE] == 1


def test_activity_records_of_agents_are_distinct_from_boundaries() -> None:
    """They are between the boundaries of lanes; one that writes after its successor is reported."""

    def by(*producers: int) -> Log:
        batches = (Batch(n, n, one, 0, False, None) for n, one in enumerate(producers))
        return Log(TOPICS.boundaries, 0, tuple(batches))

    activity = replace(boundary(1, 0, 0), key=activity_key("local.net.counts"))
    for written, kinds in ((by(7, 5, 7, 8, 5, 8), []), (by(7, 5, 8, 7), [Kind.ZOMBIE])):
        reads = Reads((written,), (), (), (activity,))
        assert agents(reads) == {5}
        (found,) = without_agents([written], agents(reads))
        assert [one.kind for one in check_writers([found], guarded=False)] == kinds

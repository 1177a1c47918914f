from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.records import KafkaRecord
from pipeline.clock import Deadline
from pipeline.errors import RefusedError, UnavailableError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID
from pipeline.replay import corrections as module
from pipeline.replay.corrections import Change, Correction, corrections, latest_records, publish
from pipeline.replay.period import Period
from pipeline.replay.write import Result
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import records, with_topics
from tests.unit.replay.test_write import Writer

TOPIC = TopicName("out")
PERIOD = Period(Millis(100), Millis(200), Millis(100), Millis(200))


def record(
    result: bytes | None, value: bytes | None, *, at: int = 100, number: int = 0, key: bytes = b"k"
) -> KafkaRecord:
    """A published result, or a correction of one."""
    headers: tuple[tuple[str, bytes | None], ...] = ()
    if result is not None:
        headers = ((RESULT_ID, result),)
    if number:
        headers = (*headers, (CORRECTION, str(number).encode()))
    return KafkaRecord(TOPIC, 1, Offset(7), Millis(at), key, value, headers)


def made(result: bytes | None, value: bytes, *, at: int = 100) -> Result:
    """A computed result."""
    return b"k", value, at, -1, result


def differences(records: Sequence[KafkaRecord], *results: Result) -> list[Correction]:
    """The corrections of some published records."""
    return list(corrections(latest_records(records, PERIOD), results))


def test_only_what_differs_is_written() -> None:
    """Changed, added and removed ones, in the partition and at the time of the result."""
    published = [record(b"1", b"a"), record(b"2", b"b"), record(b"3", b"c")]
    found = differences(published, made(b"1", b"a"), made(b"2", b"B"), made(b"4", b"d", at=150))
    assert found == [
        Correction(Change.CHANGED, b"2", b"k", b"B", Millis(100), 1, 1),
        Correction(Change.ADDED, b"4", b"k", b"d", Millis(150), -1, 1),
        Correction(Change.REMOVED, b"3", b"k", None, Millis(100), 1, 1),
    ]
    assert found[0].headers == ((RESULT_ID, b"2"), (CORRECTION, b"1"))


def test_the_last_record_of_an_id_counts() -> None:
    """A correction is corrected in turn; a removed result is added again, or stays removed."""
    there = [record(b"1", b"a"), record(b"1", b"b", number=1), record(b"1", None, number=2)]
    assert differences(there) == []
    (back,) = differences(there, made(b"1", b"a"))
    assert (back.change, back.number) == (Change.ADDED, 3)
    (again,) = differences(there[:2], made(b"1", b"a"))
    assert (again.change, again.number) == (Change.CHANGED, 2)


def test_results_outside_the_period_are_not_corrected() -> None:
    """Nor one that a correction has moved out of it; a record outside needs no id."""
    there = [record(None, b"x", at=99), record(b"1", b"a"), record(b"1", b"a", at=200, number=1)]
    assert differences([*there, record(b"2", b"b", at=200)]) == []


def test_a_record_without_an_id_cannot_be_replaced() -> None:
    """The error names its offset."""
    with pytest.raises(RefusedError, match="carries no id") as refused:
        latest_records([record(None, b"a")], PERIOD)
    assert refused.value.place == "topic out, partition 1, offset 7"
    with pytest.raises(RefusedError, match="no ids"):
        differences([], made(None, b"a"))


def test_too_many_results_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compared in memory."""
    monkeypatch.setattr(module, "IDS_MAX", 1)
    with pytest.raises(RefusedError, match="more than 1 results"):
        latest_records([record(b"1", b"a"), record(b"2", b"b")], PERIOD)


VALUES = st.dictionaries(st.binary(max_size=1), st.binary(max_size=1), max_size=6)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_a_corrected_topic_equals_the_computed_results(rounds: list[dict[bytes, bytes]]) -> None:
    """The last records by id, after each of several rounds; an unchanged round writes nothing."""
    log: list[KafkaRecord] = []
    for computed in rounds:
        results = [made(result, value) for result, value in computed.items()]
        found = differences(log, *results)
        log += [
            KafkaRecord(TOPIC, 1, Offset(0), c.timestamp_ms, c.key, c.value, c.headers)
            for c in found
        ]
        published = {dict(r.headers)[RESULT_ID]: r.value for r in log}
        assert {
            result: value for result, value in published.items() if value is not None
        } == computed
        assert differences(log, *results) == []


def test_corrections_are_one_transaction() -> None:
    """No correction: no transaction. A failed one is aborted."""
    clock = TwinClock()
    kafka = with_topics([TOPIC], partitions=2, clock=clock)
    writer = Writer(kafka)
    writer.start(Deadline.after(clock, 1, "starting"))
    writer.calls.clear()
    publish((), TOPIC, writer, clock)
    assert writer.calls == []
    found = differences([record(b"1", b"a")], made(b"2", b"b"))
    publish(found, TOPIC, writer, clock)
    assert writer.calls == ["begin", "commit"]
    assert {record.value for record in records(kafka, TOPIC)} == {b"b", None}

    class Failing(Writer):
        def commit(self, deadline: Deadline) -> None:
            del deadline
            raise UnavailableError("gone")

    failing = Failing(kafka)
    failing.start(Deadline.after(clock, 1, "starting"))
    with pytest.raises(UnavailableError):
        publish(found, TOPIC, failing, clock)
    assert failing.calls == ["start", "begin", "abort"]
    assert len(records(kafka, TOPIC)) == 2

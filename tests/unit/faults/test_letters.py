from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from brokers.records import KafkaRecord
from pipeline.ids import FragmentName, Millis, Offset, StreamName, TopicName
from tests.faults.history import Fate, Kind, Letter, Place, Sent, place_of
from tests.faults.letters import Accepted, check_inputs, check_letters, letter_of

IN, DLQ = TopicName("net-in"), TopicName("net.box.dlq")
BOX = FragmentName("box")
READ = {BOX: frozenset({IN})}
FATES = st.lists(st.sampled_from(list(Fate)), min_size=1, max_size=20)


def sent(fates: list[Fate]) -> list[Sent]:
    """Records with these fates."""
    return [
        Sent(
            place=Place(IN, 0, offset),
            stream=StreamName("readings"),
            fate=fate,
            key=b"k",
            value=f"{offset}".encode(),
            timestamp_ms=1_000 + offset,
            fields=None if fate is Fate.BAD else {"n": offset},
        )
        for offset, fate in enumerate(fates)
    ]


def dead_letter(record: Sent, offset: int = 0, **context: str) -> Letter:
    """A correct dead letter."""
    late = {"reason": "late", "event_time": "5", "closed": "5"}
    reason = late if record.fate is Fate.MAYBE_LATE else {"reason": "undecodable"}
    return Letter(
        fragment=BOX,
        place=Place(DLQ, 0, offset),
        origin=record.place,
        key=record.key,
        value=record.value,
        timestamp_ms=record.timestamp_ms,
        context={**reason, **context},
    )


def dead_letters(records: list[Sent]) -> list[Letter]:
    """The dead letters of all bad or late records."""
    refused = [r for r in records if r.fate in (Fate.BAD, Fate.MAYBE_LATE)]
    return [dead_letter(record, offset) for offset, record in enumerate(refused)]


@given(FATES)
def test_a_correct_history_has_no_findings(fates: list[Fate]) -> None:
    """Bad and late records are dead letters; a record that may be late need not be one."""
    records = sent(fates)
    assert check_letters(records, dead_letters(records), READ) == ()
    without = [one for one in dead_letters(records) if one.reason != "late"]
    assert check_letters(records, without, READ) == ()


@given(FATES)
def test_a_bad_record_without_a_dead_letter_is_lost(fates: list[Fate]) -> None:
    """No record is silently skipped."""
    records = sent([*fates, Fate.BAD])
    found = check_letters(records, dead_letters(records)[:-1], READ)
    assert [finding.kind for finding in found] == [Kind.LOST]
    assert f"topic net-in, partition 0, offset {len(fates)} is bad" in found[0].message


@given(FATES)
def test_a_second_dead_letter_of_a_record_is_reported(fates: list[Fate]) -> None:
    """Dead letters are exactly-once, too."""
    records = sent([*fates, Fate.BAD])
    (finding,) = check_letters(
        records, [*dead_letters(records), dead_letter(records[-1], 99)], READ
    )
    assert finding.kind is Kind.DUPLICATED
    assert "topic net.box.dlq, partition 0, offset 99" in finding.message
    other = dead_letter(records[-1], 99, port="left")
    assert check_letters(records, [*dead_letters(records), other], READ) == ()


def test_a_record_refused_by_one_input_of_a_join_counts_in_the_other() -> None:
    """For each of the paths behind a union."""
    (record,) = sent([Fate.MAYBE_LATE])
    for port in ("left", "left.1"):
        reported = dead_letter(record, reason="late", port=port)
        accepted = Accepted((record,), (reported,))
        assert accepted.of(reported.fragment, record.stream, "left") == ()
        assert accepted.of(reported.fragment, record.stream, "right") == (record,)


def test_a_good_record_that_is_refused_is_reported() -> None:
    """It may be refused neither for its value nor for its time."""
    (record,) = sent([Fate.GOOD])
    (refused,) = check_letters([record], [dead_letter(record)], READ)
    assert refused.kind is Kind.LETTER
    assert "topic net-in, partition 0, offset 0 is good" in refused.message
    late = dead_letter(record, reason="late", event_time="4", closed="5")
    (late_finding,) = check_letters([record], [late], READ)
    assert late_finding.kind is Kind.LATE
    assert "topic net-in, partition 0, offset 0 was sent in time" in late_finding.message


def test_a_result_may_be_late_if_its_writer_has_marked_it_so() -> None:
    """No other one may, and not before its time was closed."""
    (record,) = sent([Fate.MAYBE_LATE])
    result = Place(TopicName("net.parts"), 1, 7)
    reported = replace(dead_letter(record), origin=result)
    (finding,) = check_letters([], [reported], READ)
    assert finding.kind is Kind.LATE
    assert "topic net.parts, partition 1, offset 7 of a derived stream was late" in finding.message
    assert check_letters([], [reported], READ, {result}) == ()
    early = replace(reported, context={**reported.context, "closed": "4"})
    (finding,) = check_letters([], [early], READ, {result})
    assert "event time 5 is late, but only 4 was closed" in finding.message


def test_a_dead_letter_that_is_late_too_early_is_reported() -> None:
    """The closed time has to reach the record's event time."""
    (record,) = sent([Fate.MAYBE_LATE])
    (finding,) = check_letters([record], [dead_letter(record, closed="4")], READ)
    assert finding.kind is Kind.LATE
    assert "topic net.box.dlq, partition 0, offset 0: event time 5" in finding.message


def test_a_partly_late_record_counts_except_in_ended_windows() -> None:
    """It is accepted; the closed event time in its dead letter determines the ended windows."""
    records = sent([Fate.MAYBE_LATE])
    partly = dead_letter(records[0], reason="partly_late", event_time="4", closed="5")
    assert check_letters(records, [partly], READ) == ()
    accepted = Accepted(tuple(records), (partly,))
    assert accepted.of(BOX, "readings") == tuple(records)
    assert accepted.closed(BOX) == {records[0].place: 5}
    assert accepted.closed("other") == {}


def test_a_late_record_of_a_derived_stream_is_reported() -> None:
    """No record of a derived stream is ever late."""
    place = Place(TopicName("net.inner"), 2, 8)
    (record,) = sent([Fate.MAYBE_LATE])
    (finding,) = check_letters([record], [replace(dead_letter(record), origin=place)], READ)
    assert finding.kind is Kind.LATE
    assert "topic net.inner, partition 2, offset 8 of a derived stream" in finding.message


def test_a_dead_letter_that_differs_from_the_sent_record_is_reported() -> None:
    """Key, value and timestamp byte for byte; and the record must exist."""
    (record,) = sent([Fate.BAD])
    good = dead_letter(record)
    for spoilt in (
        replace(good, key=None),
        replace(good, value=b""),
        replace(good, timestamp_ms=0),
    ):
        (finding,) = check_letters([record], [spoilt], READ)
        assert finding.kind is Kind.DIFFERENT
        assert "is not what stands at topic net-in, partition 0, offset 0" in finding.message
    stray = replace(good, origin=Place(IN, 3, 3))
    assert [f.kind for f in check_letters([record], [good, stray], READ)] == [Kind.UNEXPECTED]
    failed = replace(good, origin=None)
    assert [f.kind for f in check_letters([record], [good, failed], READ)] == [Kind.LETTER]


def test_headers_contain_origin_and_reason() -> None:
    """A record of the topic is decoded to a dead letter; without an offset it has no origin."""
    headers = (
        ("trace", b"1"),
        ("medusa.error.reason", b"late"),
        ("medusa.error.topic", b"net-in"),
        ("medusa.error.partition", b"2"),
        ("medusa.error.offset", b"17"),
        ("medusa.error.port", b"left"),
    )
    record = KafkaRecord(DLQ, 1, Offset(5), Millis(9), b"k", b"v", headers)
    found = letter_of(BOX, record)
    assert (found.reason, found.port, found.origin) == ("late", "left", Place(IN, 2, 17))
    assert found.timestamp_ms == 9
    assert letter_of(BOX, replace(record, headers=headers[:2])).origin is None
    reported = replace(record, headers=(*headers, ("medusa.error.timestamp", b"3")))
    assert letter_of(BOX, reported).timestamp_ms == 3


def test_a_fragment_computes_with_the_records_that_it_did_not_refuse() -> None:
    """A refusal of one path leaves the others; one without a path counts for all."""
    records = sent([Fate.GOOD, Fate.MAYBE_LATE, Fate.BAD])
    left = Accepted(tuple(records), (dead_letter(records[1], port="left"),))
    assert left.of("box", "readings", "left") == (records[0],)
    assert left.of("box", "readings", "right") == tuple(records[:2])
    assert left.of("box", "readings") == (records[0],)
    assert left.of("another", "readings") == tuple(records[:2])
    both = Accepted(tuple(records), (dead_letter(records[1]),))
    assert both.of("box", "readings", "right") == (records[0],)
    assert both.of("box", "elsewhere") == ()


@given(FATES, st.integers(0, 30))
def test_the_input_contains_the_sent_records(fates: list[Fate], which: int) -> None:
    """A missing, changed or foreign record invalidates the run, and is reported."""
    records = sent(fates)
    standing = [
        KafkaRecord(IN, 0, Offset(r.place.offset), Millis(r.timestamp_ms), r.key, r.value)
        for r in records
    ]
    assert check_inputs(records, standing) == ()
    at = which % len(standing)
    changed = [replace(r, value=b"?") if i == at else r for i, r in enumerate(standing)]
    for wrong, words in (
        (check_inputs(records, standing[:at] + standing[at + 1 :]), "is not there"),
        (check_inputs(records[:at] + records[at + 1 :], standing), "was sent by nobody"),
        (check_inputs(records, changed), "holds another record"),
    ):
        (finding,) = wrong
        assert finding.kind is Kind.INPUT
        assert str(place_of(standing[at])) in finding.message
        assert words in finding.message

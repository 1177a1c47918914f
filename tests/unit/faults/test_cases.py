import json
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from pipeline.deploy.documents import read_document
from pipeline.ids import FragmentName, ParticipantId, StreamName, TopicName
from pipeline.planner.planner import plan
from schemas import avro, codec
from tests.faults.case import Case, Fed
from tests.faults.cases import CASES
from tests.faults.cases.readings import READING, recipe
from tests.faults.history import Fate, Letter, Place, Sent, Value
from tests.faults.letters import Accepted
from tests.faults.traffic import closing, mixed
from tests.unit.faults.support import START_MS

EVERY = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
LATENESS_MS = {"tolls": 5_000, "prices": 3_000, "sensors": 3_000}


@cache
def fed(case: str) -> tuple[Fed, ...]:
    """The first records of a case."""
    return tuple(islice(CASES[case].feed(Random(7), START_MS), 3_000))


def as_sent(case: Case, records: list[Fed]) -> tuple[Sent, ...]:
    """Records as a broker stores them."""
    offsets: dict[tuple[str, int], int] = {}
    found = []
    for record in records:
        name = (record.stream, record.partition)
        offsets[name] = offsets.get(name, -1) + 1
        place = Place(TopicName(case.topic("net", record.stream)), record.partition, offsets[name])
        fields = None if record.fate is Fate.BAD else record.fields
        found.append(
            Sent(place, StreamName(record.stream), record.fate, record.key, b"", 0, fields)
        )
    return tuple(found)


def reading(offset: int, at_ms: int, stream: str = "readings", sensor: str = "ash") -> Sent:
    """One reading."""
    fields: dict[str, Value] = {"sensor": sensor, "number": offset, "at": at_ms}
    fields["value"] = 10 * offset
    place = Place(TopicName(f"net-{stream}"), 0, offset)
    return Sent(place, StreamName(stream), Fate.GOOD, b"k", b"v", at_ms, fields)


@EVERY
def test_a_case_is_a_network_whose_checked_boxes_write_topics(case: Case, tmp_path: Path) -> None:
    """The document is planned, with the case's schemas, under a name that the run chooses."""
    for stream in case.streams:
        (tmp_path / f"{stream.name}.avsc").write_text(json.dumps(stream.schema))
    for file, text in case.files.items():
        (tmp_path / file).write_text(text)
    path = tmp_path / "network.yaml"
    path.write_text(case.document.replace("{name}", "net"))
    document = read_document(path, lambda _: None)
    found = plan(document.network, ParticipantId("local"))
    assert {fragment.name for fragment in found.fragments} == {*case.columns}
    topics = {source.topic for fragment in found.fragments for source in fragment.inputs}
    assert {case.topic("net", stream.name) for stream in case.streams} <= topics


@EVERY
def test_a_case_feeds_the_stated_records(case: Case) -> None:
    """Equal seeds feed equal records; good ones are in time; each value fits its schema."""
    records = fed(case.name)
    assert records == fed.__wrapped__(case.name)
    fates = {record.fate for record in records}
    assert fates == {Fate.GOOD, Fate.MAYBE_LATE, Fate.BAD}
    largest: dict[tuple[str, int], int] = {}
    lateness_ms = LATENESS_MS.get(case.name, 1_000)
    schemas = {one.name: avro.parse(json.dumps(one.schema)) for one in case.streams}
    for record in records:
        stream = case.stream(record.stream)
        assert codec.encode(schemas[record.stream], dict(record.fields))
        at_ms = record.fields[stream.event_time]
        assert isinstance(at_ms, int)
        assert 0 <= record.partition < stream.partitions
        if record.fate is Fate.BAD:
            continue
        before = largest.get((record.stream, record.partition), at_ms)
        if record.fate is Fate.GOOD:
            assert at_ms >= before - lateness_ms
            largest[record.stream, record.partition] = max(before, at_ms)
        else:
            assert at_ms < before - lateness_ms


@EVERY
def test_a_key_has_one_partition(case: Case) -> None:
    """As with any producer; without a key any partition is allowed."""
    places: dict[tuple[str, bytes], set[int]] = {}
    for record in fed(case.name):
        if record.key is not None:
            places.setdefault((record.stream, record.key), set()).add(record.partition)
    assert {len(found) for found in places.values()} == {1}


@EVERY
def test_the_reference_has_results_of_every_box(case: Case) -> None:
    """Rows have the case's columns, and dead letters are excluded."""
    sent = as_sent(case, [*fed(case.name), *case.close(START_MS + 900_000)])
    expected = case.reference(Accepted(sent, ()))
    assert {*expected} == {*case.columns}
    for box, columns in case.columns.items():
        rows = list(expected[box])
        assert rows
        assert {len(row.row) for row in rows} == {len(columns.names)}
        assert set(columns.identity) <= set(columns.names)
    refused = tuple(
        Letter(FragmentName(box), record.place, record.place, None, None, 0, {})
        for box in case.columns
        for record in sent
    )
    nothing = case.reference(Accepted(sent, refused))
    assert not [row for box in case.columns for row in nothing[box]]


def test_windows_include_their_start_and_exclude_their_end() -> None:
    """And closing records are in none."""
    case = CASES["window"]
    close = as_sent(case, list(closing(recipe(), 90_000)))
    sent = (reading(1, 1_000), reading(2, 1_999), reading(3, 2_000), *close)
    rows = {one.row for one in case.reference(Accepted(sent, ()))["counts"]}
    assert rows == {("ash", 1_000, 2_000, 2, 30, 20), ("ash", 2_000, 3_000, 1, 30, 30)}


def test_late_elements_are_in_no_window() -> None:
    """Each of them separately: another element of the same record may be in time."""
    case = CASES["flat_map_window"]
    plain = reading(1, 1_000)
    record = replace(plain, fields={**(plain.fields or {}), "value": 1371})
    late = {"sensor": "ash", "value": 1371, "part": "1"}
    gone = {FragmentName("counts"): ((late, 1_000),)}
    (row,) = case.reference(Accepted((record,), (), gone))["counts"]
    (whole,) = case.reference(Accepted((record,), ()))["counts"]
    assert (whole.row[3], row.row[3]) == (3, 2)


def test_a_join_includes_both_ends_of_its_bound() -> None:
    """Left at most 50 ms before and at most 150 ms after right; the pair has the later time."""
    left = [reading(i, at, "lefts") for i, at in enumerate((949, 950, 1_150, 1_151))]
    other = reading(9, 1_000, "rights", sensor="elm")
    sent = (*left, reading(8, 1_000, "rights"), other)
    found = CASES["join"].reference(Accepted(sent, ()))["pairs"]
    assert {(one.row, one.event_ms) for one in found} == {
        (("ash", 1, 8), 1_000),
        (("ash", 2, 8), 1_150),
    }


def test_every_kind_of_bad_record_is_fed() -> None:
    """No value, no wire format, too short, a foreign schema, far ahead, not computable."""
    spoilt = recipe(spoil_fields=(("value", 0),))
    schema = avro.parse(json.dumps(READING))
    kinds = set()
    for one in islice(mixed(Random(3), START_MS, (spoilt,)), 4_000):
        if one.fate is Fate.BAD:
            value = b"\0\0\0\0\1" + codec.encode(schema, dict(one.fields))
            kinds.add(
                one.spoil.__name__
                if one.spoil is not None and one.spoil(value) != value
                else "value"
                if one.fields["value"] == 0
                else "ahead"
            )
    assert kinds == {"tombstone", "plain_text", "cut_off", "foreign_schema", "value", "ahead"}

"""Redriven left rows of failed as-of join results, on real Spark.

The record of the left row is redriven to a plan whose expression no longer fails. The record
carries the matched table version, so the lane needs no state for it, and the row is not late.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pyspark.sql import DataFrame

from brokers.records import Headers, KafkaRecord
from pipeline.boundaries.promise import watermark_for
from pipeline.dead_letters.letter import Letter, Place, read
from pipeline.dead_letters.redrive_rules import redrive_headers
from pipeline.ids import Millis, NetworkVersion, Offset, SchemaId, TopicName
from pipeline.lanes.dead_letters import headers
from pipeline.lanes.source_ids import answered_by
from pipeline.markers.positions import InputPartition
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.results import Results
from pipeline.spark.query.lower import LoweringInputs, lower
from pipeline.spark.query.lowered import WriterSchema
from pipeline.spark.run.from_memory import MemoryQueries
from pipeline.spark.run.topic_identity import topics_of
from schemas import wire
from schemas.avro import parse
from schemas.codec import decode, encode
from tests.system.spark.support import fragments_of
from tests.unit.spark.support import sources_with_redrive

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "k", "type": "string"},
            {"name": "v", "type": ["null", "int"]},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        ],
    }
)
NETWORK = """
network: n
streams:
  rows: {{topic: rows, schema: row.avsc, event_time: at}}
  more: {{topic: more, schema: row.avsc, event_time: at}}
  table: {{topic: table, schema: row.avsc, event_time: at}}
boxes:
  both: {{union: [rows, more]}}
  known:
    as_of: {{left: both, right: table, on: [k], within: {within}, how: left}}
    select: {{k: left.k, part: "{part}"}}
outputs: {{known: {{topic: known, corrections: {ids}}}}}
"""
FAILS = "left.v % coalesce(right.v, 0)"
MENDED = "coalesce(try_mod(left.v, right.v), -1)"
DAY = 86_400_000
BEGIN = Millis(20_000 * DAY)


def planned(part: str, *, within: str = "1d", ids: bool = False) -> Fragment:
    """The fragment of the join with this `select`."""
    document = NETWORK.format(part=part, within=within, ids=str(ids).lower())
    (found,) = fragments_of(document, "known", SCHEMA)
    return found


@dataclass
class Run:
    """A query of a fragment, and its results."""

    fragment: Fragment
    queries: MemoryQueries
    computed: list[tuple[dict[str, Any], Millis]] = field(default_factory=list)
    ids: list[bytes | None] = field(default_factory=list)
    dead_letters: list[Letter] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    dropped: int = 0
    answered: int = 0
    _sent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Start the query."""
        writers = (WriterSchema(SchemaId(1), SCHEMA),)
        sources = sources_with_redrive(self.fragment)
        lowered = lower(
            self.fragment,
            LoweringInputs(
                sources=sources,
                writers={i.name: writers for i in self.fragment.inputs},
                missing=(),
                partitions=dict.fromkeys(topics_of(self.fragment, dict(sources[0].topics)), 1),
                value_id=SchemaId(1),
                key_id=None if self.fragment.output.key_schema_json is None else SchemaId(1),
            ),
        )
        self._all = [
            InputPartition(source.input, topic.topic, 0)
            for source in lowered.sources
            for topic in source.topics
        ]
        self._query = self.queries(lowered, self._write)

    def send(self, *records: tuple[str, bytes, Millis, Headers]) -> None:
        """Process records of (topic, value, time, headers)."""
        before = self._ends()
        made = []
        for topic, value, at_ms, of in records:
            offset = self._sent.get(topic, 0)
            self._sent[topic] = offset + 1
            name = TopicName(topic)
            made.append(KafkaRecord(name, 0, Offset(offset), at_ms, b"key", value, of))
        self._read = before
        self._query.add(made, self._ends())
        self._query.drain()

    def advance(self, at_ms: int) -> None:
        """Advance event time."""
        self._read = self._ends()
        self._query.move(watermark_for(self.fragment.shape, Millis(at_ms)), self._read)
        self._query.drain()

    def close(self) -> None:
        """Stop the query."""
        self._query.close()

    def _ends(self) -> dict[InputPartition, Offset]:
        return {at: Offset(self._sent.get(at.topic, 0)) for at in self._all}

    def _write(self, rows: DataFrame, batch: int, engine: Engine, inspector: Inspector) -> None:
        table = rows.toArrow()
        facts = engine.batch_facts(batch, table)
        found, schema = Results(table), parse(self.fragment.output.schema_json)
        for _, value, at_ms, _, result in found.identified(1):
            framed = wire.identified(value, (), wire.Part.VALUE)
            assert isinstance(framed, wire.Framed)
            row = decode(schema, schema, framed.body)
            assert isinstance(row, dict)
            self.computed.append((row, Millis(at_ms)))
            self.ids.append(result)
        self.answered += found.answered
        self.dropped += facts.late
        if facts.late:
            self.rejected += inspector.rejected(self._read, facts.end, facts.late_ms)
        names, sources = self.fragment.names, sources_with_redrive(self.fragment)
        for one in found.failed():
            decided = answered_by(self.fragment, sources)
            found_letter = one.letter(self.fragment, NetworkVersion(1), sources, decided)
            offset = Offset(len(self.dead_letters))
            of = headers(names, found_letter.context, ())
            topic, at_ms = names.dead_letters, one.timestamp_ms
            letter = KafkaRecord(topic, 0, offset, at_ms, None, one.value, of)
            self.dead_letters.append(read(letter))


def row(topic: str, k: str, v: int | None, after_ms: int, of: Headers = ()) -> Any:
    """A record of a stream."""
    value = {"k": k, "v": v, "note": None, "at": BEGIN + after_ms}
    body = encode(parse(SCHEMA), value)
    return topic, wire.join(SchemaId(1), body), Millis(BEGIN + after_ms + 5), of


def again(letter: Letter, originals: Sequence[Any], fragment: Fragment) -> Any:
    """The redriven record of a dead letter."""
    assert letter.row is not None
    _, value, at_ms, of = originals[letter.row.offset]
    return fragment.names.redrive, value, at_ms, (*of, *redrive_headers(letter))


@pytest.fixture
def start(queries: MemoryQueries) -> Iterator[Any]:
    """Starts queries."""
    runs: list[Run] = []

    def begin(fragment: Fragment) -> Run:
        runs.append(Run(fragment, queries))
        return runs[-1]

    yield begin
    for one in runs:
        one.close()


ROWS = [
    row("rows", "a", 7, 1_000),
    row("rows", "a", 8, 2_000),
    row("rows", "b", 9, 2_000, (("trace", b"1"),)),
    row("rows", "c", 5, 3_000),
]
MORE = row("more", "a", 6, 1_200)
TABLE = [
    row("table", "a", 0, 0),
    row("table", "a", 3, 1_500),
    row("table", "b", 0, 500),
    row("table", "b", 4, 2_500),
]


@pytest.fixture(scope="module")
def dead_letters(queries: MemoryQueries) -> tuple[Letter, ...]:
    """Dead letters of all rows: three of four fail, and one of `more`."""
    run = Run(planned(FAILS), queries)
    try:
        run.send(*ROWS, *TABLE, MORE)
        run.advance(BEGIN + 10_000)
    finally:
        run.close()
    assert [found for found, _ in run.computed] == [{"k": "a", "part": 2}]
    nowhere = Place(TopicName(""), 0, Offset(0))
    return tuple(sorted(run.dead_letters, key=lambda letter: letter.row or nowhere))


def test_a_failed_result_names_its_left_row(dead_letters: Sequence[Letter]) -> None:
    """The dead letter contains its stream and offset, the matched table version, and the values."""
    found = [(one.input, one.port, one.row, one.source) for one in dead_letters]
    assert found == [
        ("more", "left.2", Place(TopicName("more"), 0, Offset(0)), "more/0"),
        ("rows", "left.1", Place(TopicName("rows"), 0, Offset(0)), "rows/0"),
        ("rows", "left.1", Place(TopicName("rows"), 0, Offset(2)), "rows/0"),
        ("rows", "left.1", Place(TopicName("rows"), 0, Offset(3)), "rows/0"),
    ]
    letter = dead_letters[2]
    assert letter.computed_from == {
        "left": {"k": "b", "v": 9},
        "right": {"k": "b", "v": 0, "at": "2024-10-04T00:00:00.500Z"},
    }
    assert (letter.at, letter.attempt, letter.first) == (None, 1, letter.row)
    assert letter.held_by == answered_by(planned(FAILS), sources_with_redrive(planned(FAILS)))
    assert letter.held
    assert dead_letters[3].held is None


@pytest.mark.parametrize("ids", [False, True])
def test_a_redriven_row_gives_its_original_result(
    start: Any, dead_letters: Sequence[Letter], *, ids: bool
) -> None:
    """It joins the table version of its own time, even if event time has passed it.

    The query that reads it has no state, as after a start without state, and the table has a newer
    version by then. Exactly one other record of that batch is late.
    """
    repaired: Run = start(planned(MENDED, ids=ids))
    repaired.send(row("table", "b", 5, 9_000))
    repaired.advance(BEGIN + 20_000)
    repaired.send(
        row("rows", "a", 1, 500),
        again(dead_letters[0], [MORE], repaired.fragment),
        *(again(one, ROWS, repaired.fragment) for one in dead_letters[1:]),
    )
    repaired.advance(BEGIN + 30_000)
    repaired.send(row("rows", "b", 11, 31_000))
    repaired.advance(BEGIN + 40_000)
    found = sorted((of["k"], of["part"], at_ms - BEGIN) for of, at_ms in repaired.computed)
    assert found == [
        ("a", -1, 1_000), ("a", -1, 1_200), ("b", -1, 2_000), ("b", 1, 31_000), ("c", -1, 3_000),
    ]  # fmt: skip
    (late,) = repaired.rejected
    assert (late.topic, late.offset, late.why.reason.value) == ("rows", 0, "late")
    assert (repaired.answered, repaired.dead_letters) == (1, []), "all in one batch"
    if ids:
        assert {b"rows/0/0", b"rows/0/2", b"rows/0/3", b"more/0/0"} <= set(repaired.ids)


def test_the_dead_letter_contains_the_whole_table_version(
    start: Any, dead_letters: Sequence[Letter]
) -> None:
    """Another expression over the same columns reads the table version from the dead letter."""
    repaired: Run = start(planned("left.v * 10 + coalesce(right.v, 99)"))
    repaired.advance(BEGIN + 20_000)
    repaired.send(*(again(one, ROWS, repaired.fragment) for one in dead_letters[1:]))
    found = sorted((of["k"], of["part"]) for of, _ in repaired.computed)
    assert found == [("a", 70), ("b", 90), ("c", 149)]


def test_a_second_failure_is_a_dead_letter_with_the_next_attempt(
    start: Any, dead_letters: Sequence[Letter]
) -> None:
    """It contains the redriven record's position and the original one."""
    same: Run = start(planned(FAILS))
    same.advance(BEGIN + 20_000)
    same.send(again(dead_letters[2], ROWS, same.fragment))
    (letter,) = same.dead_letters
    redrive = same.fragment.names.redrive
    assert letter.row == Place(redrive, 0, Offset(0))
    assert letter.first == Place(TopicName("rows"), 0, Offset(2))
    assert (letter.attempt, letter.port, letter.source) == (2, "left.1", "rows/0")
    assert (letter.held, letter.held_by) == (dead_letters[2].held, dead_letters[2].held_by)
    third: Run = start(planned(MENDED))
    third.advance(BEGIN + 20_000)
    third.send(again(letter, [again(dead_letters[2], ROWS, same.fragment)], third.fragment))
    assert [of for of, _ in third.computed] == [{"k": "b", "part": -1}]


def test_an_invalid_table_version_is_one_dead_letter(
    start: Any, dead_letters: Sequence[Letter]
) -> None:
    """Foreign bytes do not end the query; the other rows have their results."""
    repaired: Run = start(planned(MENDED))
    repaired.advance(BEGIN + 20_000)
    forged = replace(dead_letters[2], held=b"\xff\xff")
    repaired.send(
        again(forged, ROWS, repaired.fragment), again(dead_letters[3], ROWS, repaired.fragment)
    )
    assert [(of["k"], of["part"]) for of, _ in repaired.computed] == [("c", -1)]
    (letter,) = repaired.dead_letters
    assert (letter.field, letter.box, letter.held) == ("held", "known", b"\xff\xff")
    assert "is no version of the table" in letter.message
    assert letter.computed_from is not None
    assert letter.computed_from["left"] == {"k": "b", "v": 9}


def test_a_row_redriven_to_another_join_is_late(start: Any, dead_letters: Sequence[Letter]) -> None:
    """The other table may have had another version at that time, so no result is computed."""
    other = planned(MENDED, within="2d")
    assert answered_by(other, sources_with_redrive(other)) != dead_letters[2].held_by
    other_run: Run = start(other)
    other_run.advance(BEGIN + 20_000)
    other_run.send(again(dead_letters[2], ROWS, other_run.fragment))
    assert other_run.computed == []
    assert other_run.dropped
    assert [(one.why.reason.value, one.port, one.topic) for one in other_run.rejected] == [
        ("late", "left.1", other_run.fragment.names.redrive)
    ]

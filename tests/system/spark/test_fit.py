"""A query's record filter agrees with inspection, on real Spark.

The records are unfit in every possible way, and on both sides of every limit. Inspection must have
a reason for exactly the unfit records; else a bad record is lost, or a good one is written and also
becomes a dead letter.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import pytest
from pyspark.sql import DataFrame

from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, SchemaId
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.result_headers import WRITTEN_TO
from pipeline.lanes.source_ids import named_sources
from pipeline.markers.positions import InputPartition
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query import hidden
from pipeline.spark.query.lower import LoweringInputs, lower
from pipeline.spark.query.lowered import WriterSchema
from pipeline.spark.run.from_memory import MemoryQueries
from pipeline.spark.run.topic_identity import topics_of
from schemas import wire
from tests.system.spark.support import fragments_of, run

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SENT_MS = 1_767_225_600_000
AHEAD_MS = 3_600_000
IN_2200_MS = 7_258_118_400_000
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "S",
        "fields": [
            {"name": "micros", "type": ["null", "long"]},
            {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
            {"name": "by", "type": "long"},
        ],
    }
)
TIMES = {
    "computed": "timestamp_micros(micros DIV by)",
    "a_column": "at",
}
DOCUMENT = """
network: {name}
streams: {{readings: {{topic: readings, schema: s.avsc, event_time: {time}}}}}
boxes: {{some: {{filter: readings, where: by < 3{key}}}}}
outputs: {{some: {{topic: some}}}}
"""
KEY = ", key: [by]"
"""With it the key is a computed value, which an unfit record cannot have."""
DERIVED = """
network: derived
streams: {readings: {topic: readings, schema: s.avsc, event_time: at}}
boxes:
  counts: {aggregate: readings, window: 1s, by: [by], compute: {n: count(*)}}
  some: {filter: counts, where: n > 0}
outputs: {counts: {topic: counts}, some: {topic: some}}
"""
KNOWN, MISSING, UNKNOWN = SchemaId(1), SchemaId(9), SchemaId(11)
TO_BE_SEEN = {
    "computed": set(Reason)
    - {Reason.FOREIGN, Reason.EVALUATION_FAILED, Reason.LATE, Reason.PARTLY_LATE},
    "a_column": {Reason.EVENT_TIME_MISSING, Reason.EVENT_TIME_BEFORE_1970, Reason.EVENT_TIME_AHEAD},
}


@dataclass(frozen=True, slots=True)
class Judged:
    """Results of the filter and of inspection for one batch.

    Args:
        sent: how many records there are.
        facts: what the engine counted.
        unfit: offsets of the records that the query calls unfit.
        results: how many rows are results.
        reasons: offset → reason, of the records that inspection has a reason for.
    """

    sent: int
    facts: BatchFacts
    unfit: list[int]
    results: int
    reasons: Mapping[int, Reason]


@pytest.mark.parametrize("key", ["", KEY], ids=["without_key", "with_key"])
@pytest.mark.parametrize("name", TIMES)
def test_inspection_has_a_reason_for_exactly_the_unfit_records(
    name: str, key: str, queries: MemoryQueries
) -> None:
    """For every definition of event time."""
    document = DOCUMENT.format(name=name, time=TIMES[name], key=key)
    judged = _judged(_fragment(document, name), queries)
    assert sorted(judged.reasons) == judged.unfit
    assert judged.facts.bad == len(judged.reasons)
    assert 0 < len(judged.reasons) < judged.facts.records == judged.sent
    assert set(judged.reasons.values()) >= TO_BE_SEEN[name]


def test_records_written_by_the_lane_are_accepted(queries: MemoryQueries) -> None:
    """Their header contains the id of their topic."""
    judged = _judged(_fragment(DERIVED, "derived"), queries)
    assert (judged.results, judged.facts.records, judged.facts.bad) == (1, 1, 0)
    assert judged.reasons == {}


def test_records_not_written_by_a_lane_are_foreign(queries: MemoryQueries) -> None:
    """Even if they are valid otherwise; their schema is not fetched."""
    judged = _judged(_fragment(DERIVED, "derived"), queries, written_to=b"another topic")
    assert (judged.results, judged.facts.records, judged.facts.bad) == (0, 1, 1)
    assert judged.facts.unknown == ()
    assert set(judged.reasons.values()) == {Reason.FOREIGN}


def _fragment(document: str, name: str) -> Fragment:
    planned = fragments_of(document, name, SCHEMA)
    return next(found for found in planned if found.name == "some")


def _judged(fragment: Fragment, queries: MemoryQueries, written_to: bytes | None = None) -> Judged:
    """`written_to`: the header of derived records, in place of the lane's."""
    lowered = lower(
        fragment,
        LoweringInputs(
            sources=named_sources(fragment),
            writers={i.name: (WriterSchema(KNOWN, i.schema_json),) for i in fragment.inputs},
            missing=(MISSING,),
            partitions=dict.fromkeys(topics_of(fragment), 1),
            value_id=KNOWN,
            key_id=None if fragment.output.key_schema_json is None else KNOWN,
        ),
    )
    (source,) = lowered.sources
    values = [(SENT_MS, wire.join(KNOWN, _count()))] if source.written_to else _values()
    mark = (source.written_to or "").encode() if written_to is None else written_to
    headers = ((WRITTEN_TO, mark),) if mark else ()
    records = [
        KafkaRecord(source.data.topic, 0, Offset(at), Millis(sent_ms), b"%d" % at, value, headers)
        for at, (sent_ms, value) in enumerate(values)
    ]
    begin, end = (
        {InputPartition(source.input, topic.topic, 0): Offset(read) for topic in source.topics}
        for read in (0, len(records))
    )
    batches: list[Judged] = []

    def write(rows: DataFrame, batch: int, engine: Engine, inspector: Inspector) -> None:
        table = rows.toArrow()
        facts = engine.batch_facts(batch, table)
        reasons = table.column("reason").to_pylist()
        unfit = [at for at, reason in enumerate(reasons) if reason == hidden.UNFIT]
        found = inspector.rejected(begin, facts.end, None)
        inspected = {int(one.offset): one.why.reason for one in found}
        batches.append(Judged(len(records), facts, unfit, reasons.count(None), inspected))

    run(queries, lowered, write, records, end)
    (judged,) = batches
    return judged


def _values() -> Iterator[tuple[int, bytes | None]]:
    """Timestamp and value of each record."""
    edges = (0, 1_000, SENT_MS * 1_000, (SENT_MS + AHEAD_MS) * 1_000, IN_2200_MS * 1_000)
    times = (None, -1, *(edge + step for edge in edges for step in (-1_000, -1, 0, 1, 999, 1_000)))
    for micros, by, sent_ms in product(times, (0, 1, 2), (SENT_MS, IN_2200_MS + 2 * AHEAD_MS)):
        yield sent_ms, wire.join(KNOWN, _body(micros, by))
    whole = wire.join(KNOWN, _body(5_000, 1))
    yield SENT_MS, None
    for value in (b"", b"{}", b"\x00\x00", b"\x02" + whole, whole[:5], whole[:-1], whole + b"more"):
        yield SENT_MS, value
    for other in (MISSING, UNKNOWN):
        yield SENT_MS, wire.join(other, whole[5:])


def _body(micros: int | None, by: int) -> bytes:
    """An Avro-encoded record; both event times are equal."""
    time = _number(0) if micros is None else _number(1) + _number(micros)
    return time + time + _number(by)


def _count() -> bytes:
    """An Avro-encoded window result: `by`, start, end, and `n`."""
    return b"".join(map(_number, (1, SENT_MS - 1_000, SENT_MS, 2)))


def _number(value: int) -> bytes:
    """Zigzag variable-length encoding: seven bits per byte, lowest first."""
    left, found = value << 1 if value >= 0 else ~(value << 1), bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*found, left))

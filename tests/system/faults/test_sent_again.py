"""Records that were sent again to one of several paths from an input, on Spark itself.

No other path reads them; so this one has to count them, and to refuse what cannot be read. Here,
too: that Spark says nothing twice in the plan of such a query, which it makes anew for each batch.
A Java process of its own runs the queries, as in `test_in_memory.py`.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import DataFrame

from brokers.records import KafkaRecord
from pipeline.cli.project import load_project
from pipeline.ids import Millis, Offset, SchemaId, TopicName
from pipeline.lanes.positions import InputPartition
from pipeline.planner.plan import Fragment
from pipeline.spark.facts import Engine
from pipeline.spark.from_memory import MemoryQueries
from pipeline.spark.inspect import Inspector
from pipeline.spark.lower import Surroundings, lower
from pipeline.spark.lowered import WriterSchema
from pipeline.spark.topics import topics_of
from pipeline.testing.session import open_tests
from schemas import wire
from tests.system.faults.programs import fragments_of, lines_of, run
from tests.system.tested import ROOT
from tests.unit.spark.support import SCHEMA

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

WITHIN_S = 300.0
SENT_MS = 1_767_225_600_000
SENT_AT = f"({SENT_MS} + length(car))"
TIME = f"timestamp_millis({SENT_AT} DIV length(car) * length(car) + {SENT_AT} % length(car))"
"""The same, said in a long way: with four schemas Spark once made more of it than memory holds."""
STREAM = f"""
network: again
streams: {{readings: {{topic: readings, schema: s.avsc, event_time: "{TIME}"}}}}
"""
BOXES = {
    "both": """
boxes:
  short: {filter: readings, where: length(car) < 3}
  long: {filter: readings, where: length(car) > 1}
  both: {union: [short, long]}
outputs: {both: {topic: both}}
""",
    "pairs": """
boxes:
  long: {filter: readings, where: length(car) > 1}
  pairs:
    join: {left: readings, right: long, on: [car], within: 1s}
    select: {car: left.car}
outputs: {pairs: {topic: pairs}}
""",
}
KNOWN, UNKNOWN = SchemaId(1), SchemaId(11)
WRITERS = tuple(WriterSchema(SchemaId(number), SCHEMA) for number in range(1, 5))


def test_a_record_that_was_sent_again_to_a_second_path_counts_there() -> None:
    """In a query that is counted from its rows as in one that is observed."""
    lines = lines_of("tests.system.faults.test_sent_again", within_s=WITHIN_S)
    for line in lines:
        told = json.loads(line)
        first, second = told["paths"]
        assert (told["records"], told["bad"], told["unknown"]) == (4, 2, [UNKNOWN]), told
        assert told["largest"] == [SENT_MS + 2], told
        assert told["rejected"] == [[first, 1], [second, 3]], told
        # Each path decodes once by each schema, and looks once for its name in the headers.
        assert told["said"] == [2 * len(WRITERS), 2], told
    assert len(lines) == len(BOXES)


def main() -> None:
    """To each path one record that can be read and one that cannot; tell what was counted."""
    with open_tests(load_project({}, os.environ, ROOT).settings) as start:
        for name, boxes in BOXES.items():
            sys.stdout.write(f"{json.dumps(_told(_fragment(name, boxes), start))}\n")


def _fragment(name: str, boxes: str) -> Fragment:
    return fragments_of(STREAM + boxes, name, SCHEMA)[0]


def _told(fragment: Fragment, start: MemoryQueries) -> Mapping[str, Any]:
    lowered = lower(
        fragment,
        Surroundings(
            writers={i.name: WRITERS for i in fragment.inputs},
            missing=(),
            partitions=dict.fromkeys(topics_of(fragment), 1),
            value_id=KNOWN,
            key_id=None if fragment.output.key_schema_json is None else KNOWN,
        ),
    )
    paths = [path.name for path in lowered.paths]
    names = [path for path in paths for _ in (KNOWN, UNKNOWN)]
    records = [
        _record(fragment.names.redrive, offset, path, UNKNOWN if offset % 2 else KNOWN)
        for offset, path in enumerate(names)
    ]
    begin, end = (
        {
            InputPartition(source.input, topic.topic, 0): Offset(read)
            for source in lowered.sources
            for topic in source.topics
        }
        for read in (0, len(records))
    )
    told: dict[str, Any] = {"paths": paths}

    def write(rows: DataFrame, batch: int, engine: Engine, inspector: Inspector) -> None:
        facts = engine.batch_facts(batch, rows.toArrow())
        if batch:
            return  # without records: only event time moves
        told["records"], told["bad"], told["unknown"] = facts.records, facts.bad, facts.unknown
        told["largest"] = [
            time for at, time in facts.largest.items() if at.topic == fragment.names.redrive
        ]
        optimised = engine._stream.lastExecution().optimizedPlan().toString()
        told["said"] = [optimised.count(call) for call in ("from_avro(", "__value_schema_id")]
        found = inspector.rejected(begin, facts.end, None)
        told["rejected"] = [[one.port, one.offset] for one in found]

    run(start, lowered, write, records, end)
    return told


def _record(topic: TopicName, offset: int, path: str, schema: SchemaId) -> KafkaRecord:
    car = "x" * (1 + offset // 2)
    headers = (("medusa.error.input", b"readings"), ("medusa.error.port", path.encode()))
    value = wire.join(schema, bytes((2 * len(car),)) + car.encode())
    return KafkaRecord(topic, 0, Offset(offset), Millis(SENT_MS), None, value, headers)


if __name__ == "__main__":
    main()

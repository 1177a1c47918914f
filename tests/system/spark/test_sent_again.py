"""Records redriven to one of several paths from an input, on real Spark.

No other path reads them, so this path has to count them and to reject the undecodable ones. Also:
Spark's plan of such a query, which it makes anew for each batch, contains no expression twice.
"""

from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame

from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, SchemaId, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.positions import InputPartition
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query.lower import LoweringInputs, lower
from pipeline.spark.query.lowered import Lowered, WriterSchema
from pipeline.spark.run.from_memory import MemoryQueries
from pipeline.spark.run.topic_identity import topics_of
from schemas import wire
from tests.system.spark.support import fragments_of, run
from tests.unit.spark.support import SCHEMA, sources_with_redrive

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

SENT_MS = 1_767_225_600_000
SENT_AT = f"({SENT_MS} + length(car))"
TIME = f"timestamp_millis({SENT_AT} DIV length(car) * length(car) + {SENT_AT} % length(car))"
"""The same value as a long expression: with four schemas its plan once exceeded Spark's memory."""
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


@dataclass(frozen=True, slots=True)
class Executed:
    """An executed batch.

    Args:
        facts: what the engine counted.
        rejected: the records that inspection has a reason for.
        optimised: the optimised plan, as Spark prints it.
    """

    facts: BatchFacts
    rejected: tuple[Rejected, ...]
    optimised: str


@pytest.mark.parametrize(("name", "boxes"), BOXES.items(), ids=[*BOXES])
def test_a_record_redriven_to_a_second_path_is_counted_there(
    name: str, boxes: str, queries: MemoryQueries
) -> None:
    """Both in a query that is counted from its rows and in one with observed metrics.

    Each path reads one valid and one undecodable record.
    """
    fragment = fragments_of(STREAM + boxes, name, SCHEMA)[0]
    sources = sources_with_redrive(fragment)
    lowered = lower(
        fragment,
        LoweringInputs(
            sources=sources,
            writers={i.name: WRITERS for i in fragment.inputs},
            missing=(),
            partitions=dict.fromkeys(topics_of(fragment, dict(sources[0].topics)), 1),
            value_id=KNOWN,
            key_id=None if fragment.output.key_schema_json is None else KNOWN,
        ),
    )
    first, second = (path.name for path in lowered.paths)
    topic = fragment.names.redrive
    records = [
        _record(topic, offset, path, UNKNOWN if offset % 2 else KNOWN)
        for offset, path in enumerate((first, first, second, second))
    ]
    batch = _executed(lowered, records, queries)
    facts = batch.facts
    assert (facts.records, facts.bad, facts.unknown) == (4, 2, (UNKNOWN,))
    assert [time for at, time in facts.largest.items() if at.topic == topic] == [SENT_MS + 2]
    assert [(one.port, one.offset) for one in batch.rejected] == [(first, 1), (second, 3)]
    # Each path decodes once by each schema, and compares the headers once with its name.
    assert batch.optimised.count("from_avro(") == 2 * len(WRITERS)
    assert batch.optimised.count("__value_schema_id") == 2


def _executed(lowered: Lowered, records: list[KafkaRecord], queries: MemoryQueries) -> Executed:
    """Execute one batch that reads all records."""
    begin, end = (
        {
            InputPartition(source.input, topic.topic, 0): Offset(read)
            for source in lowered.sources
            for topic in source.topics
        }
        for read in (0, len(records))
    )
    batches: list[Executed] = []

    def write(rows: DataFrame, batch: int, engine: Engine, inspector: Inspector) -> None:
        facts = engine.batch_facts(batch, rows.toArrow())
        if batch:
            return  # without records: only event time moves
        optimised = engine.stream.lastExecution().optimizedPlan().toString()
        rejected = tuple(inspector.rejected(begin, facts.end, None))
        batches.append(Executed(facts, rejected, optimised))

    run(queries, lowered, write, records, end)
    (executed,) = batches
    return executed


def _record(topic: TopicName, offset: int, path: str, schema: SchemaId) -> KafkaRecord:
    car = "x" * (1 + offset // 2)
    source = ("medusa.error.source", b"readings/0")
    headers = (source, ("medusa.error.port", path.encode()))
    value = wire.join(schema, bytes((2 * len(car),)) + car.encode())
    return KafkaRecord(topic, 0, Offset(offset), Millis(SENT_MS), None, value, headers)

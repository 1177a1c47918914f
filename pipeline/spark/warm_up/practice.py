"""Practice: warm-up of a session's JVM by queries like those of lanes, on generated records.

Most of the time of a first batch is class loading and compilation in Java. A class archive is
created from the classes loaded here, and an idle node that has practised takes over a fragment
sooner.
"""

import logging
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows
from pyspark.sql.avro.functions import to_avro

from pipeline.clock import Clock
from pipeline.ids import ParticipantId, SchemaId
from pipeline.lanes.source_ids import named_sources
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lower import LoweringInputs, lower
from pipeline.spark.query.lowered import Lowered, Source, WriterSchema
from pipeline.spark.run.topic_identity import topics_of
from pipeline.spark.warm_up.trial import Trial, run_trial
from schemas import wire

_log = logging.getLogger(__name__)

READING: Final = """
{"type": "record", "name": "Reading", "fields": [
  {"name": "sensor", "type": "string"},
  {"name": "value", "type": "double"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}
]}
"""
DOCUMENT: Final = """
network: practice
streams:
  readings:
    {topic: readings, schema: reading.avsc, event_time: at, lateness: 1s}
boxes:
  high: {filter: readings, where: value > 10}
  converted: {map: high, select: {sensor: sensor, value: value * 2, at: at}}
  means: {aggregate: readings, window: 1s, by: [sensor], compute: {mean: avg(value), n: count(*)}}
  pairs:
    join: {left: readings, right: high, on: [sensor], within: 1s}
    select: {sensor: sensor, first: left.value, second: right.value}
outputs: {converted: {topic: converted}, means: {topic: means}, pairs: {topic: pairs}}
"""
BATCHES: Final = 3
"""A window opens in the first batch, and is closed by the watermark of the second."""
WITHIN_S: Final = 120.0
_RECORDS: Final = 50
_STEP_MS: Final = 2_000
_SENSORS: Final = 5
_SCHEMA: Final = SchemaId(1)


@dataclass(frozen=True, slots=True)
class MadeUpReader:
    """Streams readings in Kafka's columns."""

    spark: SparkSession

    def __call__(self, source: Source) -> DataFrame:
        """An endless stream; each batch is `_STEP_MS` later than the last."""
        beats = (
            self.spark.readStream.format("rate-micro-batch")
            .options(rowsPerBatch=_RECORDS, advanceMillisPerBatch=_STEP_MS, numPartitions=1)
            .option("startTimestamp", _STEP_MS)
            .load()
        )
        sensor = F.concat(F.lit("sensor-"), F.col("value") % _SENSORS)
        reading = F.struct(
            sensor.alias("sensor"),
            (F.col("value") % 20).cast("double").alias("value"),
            F.col("timestamp").alias("at"),
        )
        prefix = F.lit(wire.prefix(_SCHEMA))
        return beats.select(
            sensor.cast("binary").alias("key"),
            F.concat(prefix, to_avro(reading, READING)).alias("value"),
            F.lit(source.data.topic).alias("topic"),
            F.lit(0).alias("partition"),
            F.col("value").alias("offset"),
            "timestamp",
            F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
        )


def fragments() -> tuple[Fragment, ...]:
    """Fragments of the practice: stateless, windows, and a join."""
    schemas = {
        reference: SchemaText(READING, reference.value)
        for reference in schema_references(DOCUMENT, "practice")
    }
    return plan(load(DOCUMENT, "practice", schemas), ParticipantId("practice")).fragments


def lowered(fragment: Fragment) -> Lowered:
    """Lower a fragment with one partition per topic and fixed schema ids."""
    inputs = LoweringInputs(
        sources=named_sources(fragment),
        writers={i.name: (WriterSchema(_SCHEMA, READING),) for i in fragment.inputs},
        missing=(),
        partitions=dict.fromkeys(topics_of(fragment), 1),
        value_id=_SCHEMA,
        key_id=None if fragment.output.key_schema_json is None else _SCHEMA,
    )
    return lower(fragment, inputs)


def practise(
    spark: SparkSession, folder: Path, clock: Clock, stop: threading.Event
) -> dict[str, int]:
    """Run some batches of each query; returns the number of results of each.

    Args:
        spark: the session to warm up.
        folder: for temporary checkpoints.
        clock: for deadlines.
        stop: ends it at the next batch.
    """
    results: dict[str, int] = {}
    for fragment in fragments():
        if stop.is_set():
            break
        todo = lowered(fragment)
        rows = emit(todo, MadeUpReader(spark))
        trial = Trial(
            f"practice {fragment.name}", rows, todo, folder / fragment.name, BATCHES, WITHIN_S
        )
        results[fragment.name] = sum(run_trial(trial, clock, stop))
    return results

"""Runs planned batches of a fragment on Spark and Kafka, as a lane does, and a reference."""

import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyarrow import Table
from pyspark.sql import DataFrame, SparkSession

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import Brokers
from brokers.records import NewTopicSpec
from pipeline.boundaries.next_batch import Batch
from pipeline.boundaries.promise import promise, watermark_for
from pipeline.errors import RetryError
from pipeline.ids import BatchId, Millis, Offset, SchemaId, TopicName
from pipeline.lanes.source_ids import named_sources
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Stateless
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.results import Results
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lower import LoweringInputs, lower
from pipeline.spark.query.lowered import Lowered, WriterSchema
from pipeline.spark.query.readers import (
    STREAM_OPTIONS,
    KafkaReader,
    RangeReader,
    read_options,
    starting_at,
)
from pipeline.spark.run.planned_batch import plan_first_batch, plan_next_batch, withdraw_batch
from pipeline.spark.run.query_runner import Query, QueryRunner, StoppingError
from pipeline.spark.run.steered_query import Answer, Steering
from schemas import wire
from schemas.avro import parse
from schemas.codec import encode
from tests.system.spark.support import fragments_of
from tests.system.steered.cases import PARTITIONS, SCHEMA, document
from tests.system.steered.plans import Fate, Step

_SCHEMA: Final = SchemaId(1)
NOW: Final = Millis(1)
WITHIN_S: Final = 60.0
Result = tuple[int, bytes]
"""Timestamp in ms, and the value."""


class CrashError(RetryError):
    """The test ends a query inside a batch."""


@dataclass(frozen=True, slots=True)
class Case:
    """A fragment whose topics are filled.

    Args:
        fragment: as planned.
        lowered: the same in Spark's terms.
        times: event times of the records of each partition that it reads, in ms.
    """

    fragment: Fragment
    lowered: Lowered
    times: Mapping[InputPartition, Sequence[int]]


def filled(
    kind: str, sources: int, name: str, rng: random.Random, bootstrap: str, *, most: int = 14
) -> Case:
    """Plan a fragment and fill its topics with random records, in partly random order.

    `most`: maximum number of records of a partition.
    """
    text = document(kind, sources, name)
    fragment = next(f for f in fragments_of(text, name, SCHEMA) if f.name == "out")
    topics = sorted({stream.topic for stream in fragment.inputs})
    specs = tuple(NewTopicSpec(topic, PARTITIONS, 1) for topic in topics)
    KafkaAdmin(bootstrap, WITHIN_S).create_topics(specs)
    writer = RemoteKafka(bootstrap).producer(WITHIN_S)
    written: dict[tuple[TopicName, int], list[int]] = {}
    schema = parse(SCHEMA)
    for topic in topics:
        for partition in range(PARTITIONS):
            at_ms, times = 1_000, []
            for _ in range(rng.randint(0, most)):
                at_ms += rng.choice((0, 200, 700, 1_500, 4_000))
                times.append(max(1, at_ms - rng.choice((0, 0, 300, 1_000))))
                value = {"k": rng.choice("xyz"), "v": rng.randint(0, 3), "at": times[-1]}
                body = wire.prefix(_SCHEMA) + encode(schema, value)
                writer.send(topic, None, body, partition=partition)
            written[topic, partition] = times
    writer.flush(WITHIN_S)
    writer.close()
    lowered = lowered_of(fragment)
    return Case(
        fragment,
        lowered,
        {
            InputPartition(source.input, topic.topic, partition): written[topic.topic, partition]
            for source in lowered.sources
            for topic in source.topics
            for partition in range(topic.partitions)
        },
    )


def lowered_of(fragment: Fragment) -> Lowered:
    """A fragment over streams of `SCHEMA`, in Spark's terms."""
    reads = [*(i.topic for i in fragment.inputs), fragment.output.topic]
    inputs = LoweringInputs(
        sources=named_sources(fragment),
        writers={i.name: (WriterSchema(_SCHEMA, SCHEMA),) for i in fragment.inputs},
        missing=(),
        partitions=dict.fromkeys(reads, PARTITIONS),
        value_id=_SCHEMA,
        key_id=None if fragment.output.key_schema_json is None else _SCHEMA,
    )
    return lower(fragment, inputs)


def reference(case: Case, spark: SparkSession, brokers: Brokers) -> Counter[Result]:
    """All results, computed in one job over all records."""
    ranges: dict[object, dict[TopicName, dict[int, tuple[int, int]]]] = {}
    for at, times in case.times.items():
        ranges.setdefault(at.input, {}).setdefault(at.topic, {})[at.partition] = (0, len(times))
    reader = RangeReader(spark, read_options(brokers), ranges)  # type: ignore[arg-type]
    return results_of(emit(case.lowered, reader).toArrow())


def results_of(rows: Table) -> Counter[Result]:
    """The results in a batch's rows."""
    table = Results(rows).computed().table
    times, values = (table.column(name).to_pylist() for name in ("timestamp_ms", "value"))
    return Counter(zip(times, values, strict=True))


@dataclass
class Run:
    """Executes the steps of a plan; several queries, if the plan stops or fails some."""

    case: Case
    spark: SparkSession
    brokers: Brokers
    folder: Path
    steps: Sequence[Step]
    found: Counter[Result] = field(default_factory=Counter)
    """Results of all finished batches."""
    _number: int = 0
    _next: int = 0
    _watermark_ms: Millis | None = None
    _promised_ms: Millis | None = None
    _tried: Counter[Result] | None = None

    def run(self, expected: Counter[Result]) -> None:
        """Execute all steps; results that a promise excludes, or that it lacks, are an error."""
        self._expected = expected
        self.folder.mkdir(parents=True)
        planned = False
        while self._next < len(self.steps):
            if not planned:
                self._plan(self.steps[self._next].batch)
            fate = self._query()
            planned = fate is Fate.CRASHED
            if fate is Fate.WITHDRAWN:
                assert withdraw_batch(self.folder, BatchId(self._number))
                self._next += 1
                self._tried = None

    def _plan(self, batch: Batch) -> None:
        watermark_ms = self._watermark(batch) or self._watermark_ms
        lowered, end = self.case.lowered, batch.end
        if self._number == 0:
            plan_first_batch(self.spark, self.folder, lowered, end, watermark_ms, NOW)
        else:
            number = BatchId(self._number)
            plan_next_batch(self.folder, number, lowered, end, watermark_ms, NOW)

    def _watermark(self, batch: Batch) -> Millis | None:
        shape = self.case.fragment.shape
        if batch.event_ms is None or isinstance(shape, Stateless):
            return None
        return watermark_for(shape, batch.event_ms)

    def _query(self) -> Fate:
        """Run a query from its planned batch on; returns how it ended."""
        stop = threading.Event()
        ended = [Fate.DONE]
        begins = dict.fromkeys(self.case.times, Offset(0))
        options = {**read_options(self.brokers), **STREAM_OPTIONS}
        reader = KafkaReader(self.spark, options, starting_at(begins))
        crashed_before = self._tried is not None

        def write(rows: DataFrame, number: int, engine: Engine) -> None:
            nonlocal crashed_before
            assert number == self._number
            step = self.steps[self._next]
            table = rows.toArrow()
            found = results_of(table)
            self._check(step.batch, engine, number, table)
            if step.fate in {Fate.CRASHED, Fate.WITHDRAWN} and not crashed_before:
                self._tried, ended[0] = found, step.fate
                raise CrashError("by the test")
            crashed_before = False
            if self._tried is not None:
                assert found == self._tried, "a repeated batch has other results"
            self._tried = None
            self._take(step.batch, found)
            self._number, self._next = self._number + 1, self._next + 1
            if step.fate is Fate.STOPPED or self._next == len(self.steps):
                ended[0] = Fate.STOPPED
                stop.set()

        def plan() -> Answer:
            if stop.is_set() or self._next >= len(self.steps):
                return Answer(self.steps[self._next - 1].batch.end, None, is_batch=False)
            batch = self.steps[self._next].batch
            return Answer(batch.end, self._watermark(batch))

        query = Query(
            name=self.case.fragment.name,
            rows=emit(self.case.lowered, reader),
            lowered=self.case.lowered,
            folder=self.folder,
            write=write,
            steering=Steering(self.spark, plan),
        )
        try:
            QueryRunner(stop).run(query)
        except (StoppingError, CrashError):
            return ended[0]
        raise AssertionError("the query ended by itself")

    def _check(self, batch: Batch, engine: Engine, number: int, table: Table) -> None:
        """The batch is the planned one, and nothing in it was late."""
        facts = engine.batch_facts(number, table)
        assert facts.end == batch.end
        assert facts.late == 0
        if not isinstance(self.case.fragment.shape, Stateless):
            assert facts.eviction_ms == (self._watermark(batch) or self._watermark_ms)
            assert facts.late_ms == self._watermark_ms

    def _take(self, batch: Batch, found: Counter[Result]) -> None:
        """Add results, which are above the last promise; all up to the new one are there."""
        if self._promised_ms is not None:
            early = [r for r in found if r[0] <= self._promised_ms]
            assert not early or isinstance(self.case.fragment.shape, Stateless), early
        self.found += found
        self._watermark_ms = self._watermark(batch) or self._watermark_ms
        self._promised_ms = promise(
            self.case.fragment.shape,
            eviction_ms=self._watermark_ms,
            passed_ms=batch.event_ms,
            previous_ms=self._promised_ms,
        )
        promised = self._promised_ms
        if promised is not None:
            lacking = {r: n for r, n in self._expected.items() if r[0] <= promised}
            assert Counter(lacking) == Counter(
                {r: n for r, n in self.found.items() if r[0] <= promised}
            )

"""In-memory queries for `medusa test`, without Kafka.

One Spark stream carries the records of all topics that a fragment reads, so records that are added
together are read in one batch. It is Spark's own stream for tests, called through the JVM gateway;
only this module depends on it.
"""

import base64
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.base import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user knows

from brokers.embedded.java import Java
from brokers.records import KafkaRecord
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import Millis
from pipeline.markers.positions import Positions
from pipeline.settings import Settings
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lowered import Lowered, Source
from pipeline.spark.query.readers import Ranges
from pipeline.spark.run.spark_errors import from_spark
from pipeline.spark.run.steered_query import set_watermark
from pipeline.spark.session.session import STATE_FORMAT, open_session, session_settings

_RECORDS: Final = (
    "array<struct<topic: string, partition: int, offset: bigint, timestamp: bigint, key: string, "
    "value: string, headers: array<struct<key: string, value: string>>>>"
)
_HEADERS: Final = (
    "transform(r.headers, h -> named_struct('key', h.key, 'value', unbase64(h.value)))"
)

FAST: Final = {
    "spark.sql.shuffle.partitions": "1",
    # Compiling code for each plan costs seconds and pays off after a hundred thousand rows.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # The state of a test is never continued: no RocksDB, of which each join opens eight.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
    ),
    STATE_FORMAT: "1",
}
"""Settings of a session for memory queries."""
DRAIN_WITHIN_S: Final = 300.0
_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Java compiles once and quickly: a test ends before further compilation would help. The code cache
has the default size of tiered compilation: in a fifth of it, which is the default without, many
tests run out of space."""

Write = Callable[[DataFrame, int, Engine, Inspector], None]
"""Handler of a batch: its rows, its number, the query's engine, and an inspector."""


def open_memory_session(settings: Settings, scratch: Path, java: Java) -> SparkSession:
    """Open a session for memory queries, local regardless of the configured master.

    Raises:
        EnvironmentProblem: a jar is missing, or it does not start.
    """
    wanted = session_settings(settings, "medusa-test", scratch, java)
    options = f"{wanted.java_options} {_JAVA}"
    spark = open_session(replace(wanted, master="local[2]", java_options=options))
    spark.sparkContext.setLogLevel("OFF")  # failures are raised
    for name, value in FAST.items():
        spark.conf.set(name, value)
    return spark


@dataclass(frozen=True, slots=True)
class _Source:
    """A fragment as a DataFrame over its own stream, which is empty between two queries."""

    lowered: Lowered
    stream: Any
    rows: DataFrame


class MemoryQueries:
    """Starts memory queries, each with its own folder.

    Spark takes longer to analyse a fragment than to run some batches of it, so the analysed
    DataFrame is kept, and reused by the next query of that fragment after this one has ended.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._started = 0
        self._free: list[_Source] = []

    def __call__(self, lowered: Lowered, write: Write) -> "MemoryQuery":
        """Start the query of a fragment.

        Args:
            lowered: the fragment.
            write: called for each batch, in its own thread, while `drain` waits.
        """
        source = next((one for one in self._free if one.lowered == lowered), None)
        if source is None:
            source = self._source(lowered)
        else:
            self._free.remove(source)
        self._started += 1
        folder = self._folder / f"query-{self._started}"
        return MemoryQuery(self._spark, source, folder, write, self._give_back)

    def _source(self, lowered: Lowered) -> _Source:
        stream = _new_stream(self._spark)
        texts = DataFrame(stream.toDF(), self._spark)
        return _Source(lowered, stream, emit(lowered, _Reader(texts)))

    def _give_back(self, source: _Source) -> None:
        source.stream.reset()
        self._free.append(source)


class MemoryQuery:
    """The running query of one fragment; it reads the records passed to `add`.

    Not thread-safe. `close` ends it.
    """

    def __init__(
        self,
        spark: SparkSession,
        source: _Source,
        folder: Path,
        write: Write,
        give_back: Callable[[_Source], None],
    ) -> None:
        """Start it; `give_back` is called when it has ended."""
        self._spark = spark
        self._source = source
        self._write = write
        self._give_back = give_back
        self._records: list[KafkaRecord] = []
        self._ends: list[Positions] = []
        self._raised: MedusaError | None = None
        self._watermark_ms: Millis | None = None
        self._inspector = Inspector(source.lowered, self._again)
        writer = source.rows.writeStream.outputMode("append").foreachBatch(self._batch)
        self._query = writer.option("checkpointLocation", folder.as_uri()).start()
        self._engine = _MemoryEngine(self._query, source.lowered, self._ends)

    def add(self, records: Sequence[KafkaRecord], ends: Positions) -> None:
        """Add records; `ends` are the positions of all partitions after them."""
        self._records.extend(records)
        self._ends.append(ends)
        jvm = _gateway(self._spark).jvm
        texts = jvm.java.util.ArrayList()
        texts.add(_as_json(records))
        self._source.stream.addData(jvm.org.apache.spark.api.python.PythonUtils.toSeq(texts))

    def move(self, watermark_ms: Millis, ends: Positions) -> None:
        """Move the watermark: after an empty batch, one without records comes, under it."""
        self._watermark_ms = watermark_ms
        self.add((), ends)

    def drain(self) -> None:
        """Wait until all added records are processed and written.

        Raises:
            MedusaError: the error of `write`, or the translated error of Spark. RetryError: it took
            too long; the query has ended.
        """
        overdue = threading.Event()

        def give_up() -> None:
            overdue.set()
            self._query.stop()

        timer = threading.Timer(DRAIN_WITHIN_S, give_up)
        timer.daemon = True
        timer.start()
        try:
            self._query.processAllAvailable()
        except (PySparkException, Py4JJavaError) as error:
            if not overdue.is_set():
                raise self._raised or from_spark(error, None) from error
        finally:
            timer.cancel()
        if overdue.is_set():
            raise RetryError(f"a batch was not done after {DRAIN_WITHIN_S:.0f} s")

    def close(self) -> None:
        """Stop it."""
        self._query.stop()
        self._give_back(self._source)

    def _batch(self, rows: DataFrame, batch: int) -> None:
        try:
            self._write(rows, batch, self._engine, self._inspector)
        except MedusaError as error:
            self._raised = error
            raise
        watermark_ms, self._watermark_ms = self._watermark_ms, None
        if watermark_ms is not None:
            set_watermark(self._engine, watermark_ms)

    def _again(self, ranges: Ranges) -> "_Reader":
        wanted = {
            (topic, partition): range(*ends)
            for topics in ranges.values()
            for topic, partitions in topics.items()
            for partition, ends in partitions.items()
        }
        nothing = range(0)
        found = [
            r for r in self._records if r.offset in wanted.get((r.topic, r.partition), nothing)
        ]
        return _Reader(self._spark.createDataFrame([(_as_json(found),)], "value string"))


@dataclass(frozen=True)
class _MemoryEngine(Engine):
    """The engine of a query whose source offset is the number of calls of `add`."""

    ends: list[Positions]

    def _positions(self, offsets: list[Any]) -> Positions:
        return self.ends[int(offsets[0])]


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads records from rows of one text, in the form of `_as_json`."""

    texts: DataFrame

    def __call__(self, source: Source) -> DataFrame:
        """The records of the source's topics, in Kafka's columns."""
        rows = self.texts.select(F.explode(F.from_json("value", _RECORDS)).alias("r"))
        topics = [assigned.topic for assigned in source.topics]
        return rows.where(F.col("r.topic").isin(topics)).select(
            F.unbase64("r.key").alias("key"),
            F.unbase64("r.value").alias("value"),
            "r.topic",
            "r.partition",
            "r.offset",
            F.timestamp_millis("r.timestamp").alias("timestamp"),
            F.expr(_HEADERS).alias("headers"),
        )


def _as_json(records: Sequence[KafkaRecord]) -> str:
    """Records as one JSON text."""
    return json.dumps(
        [
            {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp_ms,
                "key": _base64(record.key),
                "value": _base64(record.value),
                "headers": [{"key": k, "value": _base64(v)} for k, v in record.headers],
            }
            for record in records
        ]
    )


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def _new_stream(spark: SparkSession) -> Any:
    """An empty stream of texts."""
    jvm = _gateway(spark).jvm
    memory = jvm.org.apache.spark.sql.execution.streaming.runtime.MemoryStream
    texts = jvm.org.apache.spark.sql.Encoders.STRING()
    return memory.apply(texts, spark._jsparkSession)  # noqa: SLF001 - PySpark keeps it


def _gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._gateway  # noqa: SLF001 - PySpark keeps it

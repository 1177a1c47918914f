"""The benchmarks' jobs in plain PySpark, as the comparison.

The same session settings, the same Avro in and out, and one Kafka transaction for each batch in
`foreachBatch`; or Spark's own Kafka sink, which writes at least once. No dead letters, no markers,
no boundaries, no fencing by epoch. It prints `ready`, then one `batch …` line for each batch with
a transaction, on stdout until it is stopped.
"""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias in Spark programs
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from benchmarks.conversion import convert
from benchmarks.readings import AVERAGE_JSON, CONVERTED_JSON, MAXIMUM_JSON, READING_JSON

STREAMING = "org.apache.spark.sql.execution.streaming"
BARE_FILES = "hadoop-bare-naked-local-fs"
IN_PYSPARK = ("slf4j", "snappy", "lz4", "jsr305", "spark-tags", "scala-parallel")
"""Jars that PySpark contains."""
COMMIT_SECONDS = 60
CONVERTED = {
    "sensor": "string",
    "site": "string",
    "fahrenheit": "double",
    "humidity": "double",
    "at": "timestamp",
}
CHAIN = "chain"
CHAINED = (("site", "sensor"), ("site",), ())
"""The groups of the chain's windows."""
PREFIX = b"\x00\x00\x00\x00\x01"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line."""

    bootstrap_servers: str
    jars: Path
    scratch: Path
    source: str
    target: str
    job: str
    batch_records: int
    memory: str
    write: str


def parse(arguments: list[str]) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--bootstrap-servers", required=True)
    add("--jars", type=Path, required=True, help="folder with the connector jars")
    add("--scratch", type=Path, required=True, help="folder for checkpoint and temporary files")
    add("--source", required=True, help="topic to read")
    add("--target", required=True, help="topic to write; a chain: one for each window, by commas")
    add("--job", choices=(*JOBS, CHAIN), required=True)
    add("--batch-records", type=int, default=400_000)
    add("--write", choices=("transaction", "sink"), default="transaction")
    add("--memory", default="1g", help="heap of the driver")
    values = parser.parse_args(arguments)
    return Options(**vars(values))


def session(jar_folder: Path, scratch: Path, memory: str) -> SparkSession:
    """A session with the settings of a node's session."""
    jars = sorted(jar_folder.glob("*.jar"))
    bare = next(jar for jar in jars if jar.name.startswith(BARE_FILES))
    config = {
        "spark.jars": ",".join(str(j) for j in jars if not j.name.startswith(IN_PYSPARK)),
        "spark.driver.extraClassPath": str(bare),
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.stateStore.providerClass": (
            f"{STREAMING}.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.minBatchesToRetain": "20",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.scheduler.mode": "FAIR",
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xss4m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
    builder = SparkSession.builder.appName("plain").master("local[2]")
    for key, value in config.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def read(spark: SparkSession, options: Options, schema_json: str = READING_JSON) -> DataFrame:
    """Decoded values, by default readings, with their Kafka key and partition."""
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", options.source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", options.batch_records)
        .load()
    )
    body = F.expr("substring(value, 6)")
    rows = raw.select("key", "partition", "offset", from_avro(body, schema_json).alias("decoded"))
    return rows.select("key", "partition", "offset", "decoded.*")


def stateless(rows: DataFrame) -> DataFrame:
    """Filter and map; a record keeps its key and its partition."""
    converted = rows.where("celsius > -90").select(
        "key",
        "partition",
        "sensor",
        "site",
        (F.col("celsius") * 1.8 + 32).alias("fahrenheit"),
        "humidity",
        "at",
    )
    return _placed(converted)


def python(rows: DataFrame) -> DataFrame:
    """The same by a function over Arrow record batches, which passes key and partition through."""
    schema = "key binary, partition int, " + ", ".join(f"{n} {t}" for n, t in CONVERTED.items())

    def converted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            made = convert(batch)
            columns = [batch.column(name) for name in ("key", "partition")]
            columns += [made.column(name) for name in CONVERTED]
            yield pa.RecordBatch.from_arrays(columns, names=["key", "partition", *CONVERTED])

    return _placed(rows.where("celsius > -90").mapInArrow(converted, schema))


def _placed(converted: DataFrame) -> DataFrame:
    """Converted readings as records of the target."""
    columns = ("sensor", "site", "fahrenheit", "humidity", "at")
    return converted.select(
        "key",
        encoded(columns, CONVERTED_JSON).alias("value"),
        F.unix_millis("at").alias("timestamp_ms"),
        "partition",
    )


def windowed(rows: DataFrame) -> DataFrame:
    """Averages of one second for each site, under Spark's own watermark."""
    grouped = rows.withWatermark("at", "0 seconds").groupBy(F.window("at", "1 second"), "site")
    averages = grouped.agg(F.avg("celsius").alias("celsius"), F.count("*").alias("readings"))
    named = averages.select(
        "site",
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "celsius",
        "readings",
    )
    columns = ("site", "window_start", "window_end", "celsius", "readings")
    return named.select(
        F.col("site").cast("binary").alias("key"),
        encoded(columns, AVERAGE_JSON).alias("value"),
        F.unix_millis("window_end").alias("timestamp_ms"),
        F.lit(-1).alias("partition"),
    )


def maxima(rows: DataFrame, at: str, by: tuple[str, ...], readings: Column) -> DataFrame:
    """Maxima of one second for each group, one window of the chain."""
    grouped = rows.withWatermark(at, "0 seconds").groupBy(F.window(at, "1 second"), *by)
    found = grouped.agg(F.max("celsius").alias("celsius"), readings.alias("readings"))
    present = {name: F.col(name) for name in by}
    named = found.select(
        *(present.get(name, F.lit(None).cast("string")).alias(name) for name in ("site", "sensor")),
        F.col("window.start").alias("window_start"),
        F.col("window.end").alias("window_end"),
        "celsius",
        "readings",
    )
    columns = ("site", "sensor", "window_start", "window_end", "celsius", "readings")
    return named.select(
        F.concat_ws("|", "site", "sensor").cast("binary").alias("key"),
        encoded(columns, MAXIMUM_JSON).alias("value"),
        F.unix_millis("window_end").alias("timestamp_ms"),
        F.lit(-1).alias("partition"),
    )


def chain(spark: SparkSession, options: Options) -> list[StreamingQuery]:
    """Three windows, each a query that reads the topic of the one before."""
    targets = options.target.split(",")
    queries = []
    for hop, (source, target, by) in enumerate(
        zip((options.source, *targets), targets, CHAINED, strict=False)
    ):
        one = replace(options, source=source, target=target, scratch=options.scratch / target)
        if hop == 0:
            job = maxima(read(spark, one), "at", by, F.count("*"))
        else:
            job = maxima(read(spark, one, MAXIMUM_JSON), "window_end", by, F.sum("readings"))
        queries.append(start(job, one))
    return queries


def encoded(columns: tuple[str, ...], schema_json: str) -> Column:
    """A prefix of five bytes, then the Avro body."""
    return F.concat(F.lit(PREFIX), to_avro(F.struct(*columns), schema_json))


JOBS: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "stateless": stateless,
    "python": python,
    "window": windowed,
}


def own_sink(job: DataFrame, options: Options) -> DataStreamWriter:
    """Spark's own Kafka sink: at least once, written by its tasks. It cannot set timestamps.

    A job may name the topic of each row; else all go to the target.
    """
    placed = F.expr("nullif(partition, -1)").alias("partition")
    topic = F.col("topic") if "topic" in job.columns else F.lit(options.target).alias("topic")
    return (
        job.select("key", "value", placed, topic)
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", options.bootstrap_servers)
    )


def writer(options: Options) -> Callable[[DataFrame, int], None]:
    """The function for `foreachBatch`: one transaction for each batch."""
    producer = Producer(
        {
            "bootstrap.servers": options.bootstrap_servers,
            "transactional.id": f"plain-{options.target}",
            "retry.backoff.ms": 10,
            "partitioner": "murmur2_random",
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 512_000,
            "log_level": 3,
        }
    )
    producer.init_transactions(COMMIT_SECONDS)

    def write(rows: DataFrame, batch: int) -> None:
        started = time.monotonic()
        table = rows.toArrow()
        executed = time.monotonic()
        producer.begin_transaction()
        for key, value, timestamp_ms, partition, *named in columns_of(table):
            topic = named[0] if named else options.target
            while True:
                try:
                    producer.produce(topic, value, key, partition, timestamp=timestamp_ms)
                except BufferError:
                    producer.poll(0.05)
                else:
                    break
        producer.commit_transaction(COMMIT_SECONDS)
        took = f"{executed - started:.3f} {time.monotonic() - executed:.3f}"
        sys.stdout.write(f"batch {batch} {table.num_rows} {took}\n")
        sys.stdout.flush()

    return write


def columns_of(table: Any) -> Iterator[tuple[Any, ...]]:
    """The records of a batch, a chunk at a time so that not all are Python objects at once."""
    for chunk in table.to_batches(max_chunksize=10_000):
        yield from zip(*(column.to_pylist() for column in chunk.columns), strict=True)


def start(job: DataFrame, options: Options) -> StreamingQuery:
    """Run a job as a query, with the sink of the options."""
    written = job.writeStream if options.write == "transaction" else own_sink(job, options)
    written = written.option("checkpointLocation", str(options.scratch / "checkpoint"))
    if options.write == "transaction":
        written = written.foreachBatch(writer(options))
    return written.outputMode("append").start()


def main(arguments: list[str]) -> int:
    """Run until SIGTERM or SIGINT, or until the query fails."""
    options = parse(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    spark = session(options.jars, options.scratch, options.memory)
    if options.job == CHAIN:
        queries = chain(spark, options)
    else:
        queries = [start(JOBS[options.job](read(spark, options)), options)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while all(query.isActive for query in queries) and not stop.wait(0.2):
        pass
    failures = [failure for query in queries if (failure := query.exception()) is not None]
    for query in queries:
        query.stop()
    spark.stop()
    for failure in failures:
        sys.stderr.write(f"{failure}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

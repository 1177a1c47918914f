"""Spark readers of a source's records: as a stream, or as ranges of topics."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame, SparkSession

from brokers.kafka.servers import Brokers, java_options, servers
from pipeline.ids import StreamName, TopicName
from pipeline.markers.positions import Positions
from pipeline.spark.query.lowered import Source

FETCH_WAIT_MS = 1
"""Maximum wait of the broker on a fetch without records.

After each fetch Spark asks for the range of available offsets, on the connection on which the
consumer has already sent the next fetch; the broker answers in order. With Kafka's default of 500,
every batch that reads from a quiet partition takes half a second. Spark only
fetches records that exist, so a short wait costs nothing.
"""


RECORDS_WITHIN_MS = 10_000
"""How long a task waits for records that exist: then the batch is withdrawn, and planned without
the partitions that cannot be read."""
ANSWER_WITHIN_MS = 3_000
"""How long a consumer waits for one answer; then it asks another broker.

A new consumer may ask a broker that hangs first, whose partitions it does not read: there has to be
time for the others within `RECORDS_WITHIN_MS`.
"""
RANGE_WITHIN_MS = 5_000
"""How long a task waits for the range of a partition, which it asks for after each fetch, also one
without an answer: both waits add up."""
STREAM_OPTIONS = {
    "failOnDataLoss": "true",
    "kafkaConsumer.pollTimeoutMs": str(RECORDS_WITHIN_MS),
    "kafka.default.api.timeout.ms": str(RANGE_WITHIN_MS),
    "kafka.request.timeout.ms": str(ANSWER_WITHIN_MS),
    "kafka.socket.connection.setup.timeout.ms": str(ANSWER_WITHIN_MS),
    "kafka.socket.connection.setup.timeout.max.ms": str(ANSWER_WITHIN_MS),
}
"""Further options of a lane's stream."""


def read_options(brokers: Brokers) -> dict[str, str]:
    """Options of Spark's Kafka source for committed records, as a stream or as ranges.

    The values contain secrets.
    """
    known = servers(brokers)
    return {
        "kafka.bootstrap.servers": known.bootstrap,
        **{f"kafka.{name}": value for name, value in java_options(known).items()},
        "kafka.isolation.level": "read_committed",
        "kafka.fetch.max.wait.ms": str(FETCH_WAIT_MS),
    }


def starting_at(begin: Positions) -> dict[StreamName, dict[TopicName, dict[int, int]]]:
    """Positions in the form of `KafkaReader.starts`."""
    starts: dict[StreamName, dict[TopicName, dict[int, int]]] = {}
    for at, offset in begin.items():
        starts.setdefault(at.input, {}).setdefault(at.topic, {})[at.partition] = int(offset)
    return starts


Ranges = Mapping[StreamName, Mapping[TopicName, Mapping[int, tuple[int, int]]]]
"""Ranges by input: topic → partition → (start, end), the end excluded."""


class Reader(Protocol):
    """Reader of a source's records, as a stream or as ranges of one batch."""

    def __call__(self, source: Source) -> DataFrame:
        """Spark's Kafka columns, headers included."""


@dataclass(frozen=True, slots=True)
class KafkaReader:
    """Reads sources as streams. `starts` is used only without a checkpoint.

    A source's partitions are read by as many tasks as there are cores: the cost of a task before
    its first record, above all code generation and Avro readers, dominates a small batch.
    """

    spark: SparkSession
    options: Mapping[str, str]
    starts: Mapping[StreamName, Mapping[TopicName, Mapping[int, int]]]

    def __call__(self, source: Source) -> DataFrame:
        """An endless stream."""
        assigned = {t.topic: list(range(t.partitions)) for t in source.topics}
        starts = {
            topic: {str(p): o for p, o in sorted(offsets.items())}
            for topic, offsets in self.starts[source.input].items()
        }
        return (
            self.spark.readStream.format("kafka")
            .options(**self.options)
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", json.dumps(starts))
            .option("includeHeaders", "true")
            .load()
            .coalesce(self.spark.sparkContext.defaultParallelism)
        )


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads the ranges of one batch again."""

    spark: SparkSession
    options: Mapping[str, str]
    ranges: Ranges

    def __call__(self, source: Source) -> DataFrame:
        """The records from the starts up to the ends, exclusive."""
        ranges = self.ranges[source.input]
        starts = {t: {str(p): r[0] for p, r in parts.items()} for t, parts in ranges.items()}
        ends = {t: {str(p): r[1] for p, r in parts.items()} for t, parts in ranges.items()}
        assigned = {t: sorted(parts) for t, parts in ranges.items()}
        return (
            self.spark.read.format("kafka")
            .options(**self.options)
            .option("assign", json.dumps(assigned))
            .option("startingOffsets", json.dumps(starts))
            .option("endingOffsets", json.dumps(ends))
            .option("includeHeaders", "true")
            .load()
        )

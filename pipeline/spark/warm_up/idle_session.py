"""Warm-up tasks of a session: practice, and rehearsals.

A rehearsal is the query of a fragment that another node runs, with its results discarded. Practice
warms up Java for queries like a lane's. The rest of a first batch's cost is specific to the
fragment: compiling the code that Spark generates for its plan, and the first fetches from its
topics.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from brokers.kafka.servers import Brokers
from brokers.kafka_interface import KafkaCluster, complete
from pipeline.clock import Clock
from pipeline.ids import Millis, Offset, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.planner.plan import Fragment
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lower import lower
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.readers import KafkaReader, read_options, starting_at
from pipeline.spark.run.batch_sizer import BatchSizer
from pipeline.spark.run.schema_resolver import SchemaResolver
from pipeline.spark.warm_up.practice import practise
from pipeline.spark.warm_up.trial import Trial, run_trial

RECENT_MS = 10_000
"""Age of the oldest records that a rehearsal reads."""
RECORDS_PER_BATCH = 2_000
BATCHES = 12
WITHIN_S = 30.0
BESIDE_RECORDS = 100
"""How many of the last offsets of each partition a rehearsal beside lanes reads."""
BESIDE_BATCHES = 3
BESIDE_WITHIN_S = 15.0


@dataclass(frozen=True, slots=True)
class IdleSession:
    """Runs practice and rehearsals; they read topics, and write only their folder.

    Spark reads from `brokers`, everything else goes through `kafka`, the same cluster.
    """

    spark: SparkSession
    resolver: SchemaResolver
    kafka: KafkaCluster
    brokers: Brokers
    clock: Clock

    def practise(self, folder: Path, stop: threading.Event) -> dict[str, int]:
        """As `practise` of `practice.py`."""
        return practise(self.spark, folder, self.clock, stop)

    def rehearse(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        folder: Path,
        stop: threading.Event,
    ) -> int:
        """Run some batches on the latest records; returns their number.

        Args:
            fragment: to run.
            topic_ids: of its topics, when it was deployed.
            folder: for the temporary checkpoint.
            stop: ends it at the next batch.

        Raises:
            MedusaError: a topic or schema is gone, a server does not answer, or the query failed.
        """
        lowered = lower(fragment, self.resolver.resolve(fragment, topic_ids, ()))
        begin = self._recent(lowered)
        rows = self._rows(lowered, begin, RECORDS_PER_BATCH)
        trial = Trial(_name(fragment), rows, lowered, folder, BATCHES, WITHIN_S)
        return len(run_trial(trial, self.clock, stop))

    def rehearse_beside(
        self,
        fragment: Fragment,
        topic_ids: Mapping[TopicName, str],
        folder: Path,
        stop: threading.Event,
    ) -> int:
        """Run a few batches on the last records, beside lanes; returns their number.

        It reads a number of records, however old they are, so that its work is bounded; nothing
        runs if there are none.

        Args:
            fragment: to run.
            topic_ids: of its topics, when it was deployed.
            folder: for the temporary checkpoint.
            stop: ends it at the next batch.

        Raises:
            MedusaError: a topic or schema is gone, a server does not answer, or the query failed.
        """
        lowered = lower(fragment, self.resolver.resolve(fragment, topic_ids, ()))
        begin, there = self._last(lowered)
        if not there:
            return 0
        rows = self._rows(lowered, begin, max(1, there // BESIDE_BATCHES))
        trial = Trial(_name(fragment), rows, lowered, folder, BESIDE_BATCHES, BESIDE_WITHIN_S)
        return len(run_trial(trial, self.clock, stop))

    def _rows(
        self, lowered: Lowered, begin: Mapping[InputPartition, Offset], most: int
    ) -> DataFrame:
        """The results of the query from these positions on, at most so many records at once."""
        sampled = BatchSizer(self.kafka, self.resolver.admin, self.clock).records_at_once(begin)
        options = {
            **read_options(self.brokers),
            "maxOffsetsPerTrigger": str(min(most, sampled or most)),
            "failOnDataLoss": "false",
        }
        return emit(lowered, KafkaReader(self.spark, options, starting_at(begin)))

    def _last(self, lowered: Lowered) -> tuple[dict[InputPartition, Offset], int]:
        """Positions before the last records of each partition, and the number of offsets then."""
        topics = {one.topic for source in lowered.sources for one in source.topics}
        admin = self.resolver.admin
        starts = complete(admin.start_offsets(topics), topics)
        ends = complete(admin.end_offsets(topics), topics)
        begin, there = dict[InputPartition, Offset](), 0
        for source in lowered.sources:
            for one in source.topics:
                for partition, end in ends[one.topic].items():
                    first = starts[one.topic].get(partition, end)
                    offset = Offset(max(first, end - BESIDE_RECORDS))
                    begin[InputPartition(source.input, one.topic, partition)] = offset
                    there += max(0, end - offset)
        return begin, there

    def _recent(self, lowered: Lowered) -> dict[InputPartition, Offset]:
        since_ms = Millis(self.clock.now_ms() - RECENT_MS)
        return {
            InputPartition(source.input, assigned.topic, partition): offset
            for source in lowered.sources
            for assigned in source.topics
            for partition, offset in self.resolver.admin.offsets_for_time(
                assigned.topic, since_ms
            ).items()
        }


def _name(fragment: Fragment) -> str:
    """That of a rehearsal, in Spark's messages."""
    return f"rehearsal {fragment.names.network}.{fragment.name}"

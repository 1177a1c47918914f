"""Warm-up tasks of an idle session: practice, and rehearsals.

A rehearsal is the query of a fragment that another node runs, with its results discarded. Practice
warms up Java for queries like a lane's. The rest of a first batch's cost is specific to the
fragment: compiling the code that Spark generates for its plan, and the first fetches from its
topics.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from brokers.kafka.servers import Brokers
from brokers.kafka_interface import KafkaCluster
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
        sizer = BatchSizer(self.kafka, self.resolver.admin, self.clock)
        most = min(RECORDS_PER_BATCH, sizer.records_at_once(begin))
        options = {
            **read_options(self.brokers),
            "maxOffsetsPerTrigger": str(most),
            "failOnDataLoss": "false",
        }
        reader = KafkaReader(self.spark, options, starting_at(begin))
        rows = emit(lowered, reader)
        name = f"rehearsal {fragment.names.network}.{fragment.name}"
        trial = Trial(name, rows, lowered, folder, BATCHES, WITHIN_S)
        return len(run_trial(trial, self.clock, stop))

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

"""Resources of a node that its lanes share."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from brokers.kafka.servers import Brokers
from brokers.kafka_interface import KafkaCluster
from pipeline.clock import Clock
from pipeline.ids import NO_EPOCH, Epoch, NodeId
from pipeline.lanes.events import LaneEvent
from pipeline.names import FragmentNames
from pipeline.spark.run.checkpoint_copies import CheckpointCopies
from pipeline.spark.run.lane_meters import LaneMeters
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.lane_steps import LaneSteps
from pipeline.spark.run.last_marker import read_marker
from pipeline.spark.run.schema_resolver import SchemaResolver


@dataclass(frozen=True, slots=True)
class LaneHost:
    """Resources that all lanes of a node share.

    `node` is its name. Spark reads from `brokers`, everything else goes through `kafka`, the same
    cluster.
    `claimed` is called when a lane has claimed its fragment, before it starts. `news` reaches the
    lanes that run; `steps` are theirs. `copies` are those of their checkpoints; None: there is no
    checkpoint store. `meters` count what each fragment uses.
    """

    node: NodeId
    spark: SparkSession
    resolver: SchemaResolver
    kafka: KafkaCluster
    brokers: Brokers
    checkpoints: Path
    clock: Clock
    report: Callable[[LaneEvent], None]
    claimed: Callable[[], None]
    news: LaneNews
    steps: LaneSteps = field(default_factory=LaneSteps)
    copies: CheckpointCopies | None = None
    meters: LaneMeters = field(default_factory=LaneMeters)

    def admit(self, names: FragmentNames) -> Epoch:
        """Epoch of a fragment's last commit marker, before it is claimed; `NO_EPOCH` without one.

        Raises:
            NewerFormatError: a newer version of Medusa wrote it.
        """
        marker = read_marker(self.kafka, names)
        return NO_EPOCH if marker is None else marker.epoch

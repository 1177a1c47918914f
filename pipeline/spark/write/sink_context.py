"""Dependencies of a sink, constant while its lane runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokers.kafka.group_mirror import GroupMirror
from brokers.kafka_interface import RecordWriter, TopicAdmin, TransactionWriter
from pipeline.clock import Clock
from pipeline.ids import (
    BoxName,
    Epoch,
    LaneId,
    Millis,
    NetworkVersion,
    RunNumber,
    StreamName,
    TopicId,
)
from pipeline.lanes.events import BatchFinished
from pipeline.planner.plan import Fragment
from pipeline.spark.batch.ports import BatchPlans, Jobs, Schemas, Topics


@dataclass(frozen=True, slots=True)
class SinkContext:
    """A lane, and the clients of its sink.

    `functions`: path → its boxes that call user functions. `output_id` is Kafka's id of the output
    topic at deploy, `output_partitions` the number of its partitions at the start of the lane; it
    may rise meanwhile. `promised`: the boundary of a derived input that finished batches cover;
    None: there is none.
    """

    lane: LaneId
    run: RunNumber
    fragment: Fragment
    version: NetworkVersion
    epoch: Epoch
    writer: TransactionWriter
    admin: TopicAdmin
    output_id: TopicId
    output_partitions: int
    boundaries: RecordWriter
    mirror: GroupMirror
    schemas: Schemas
    topics: Topics
    commits: Jobs
    plans: BatchPlans
    functions: Mapping[str, tuple[BoxName, ...]]
    promised: Callable[[StreamName], Millis | None]
    clock: Clock
    report: Callable[[BatchFinished], None]

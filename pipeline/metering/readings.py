"""Readings of counters: cumulative CPU time of a node's processes and of its lanes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pipeline.ids import FragmentId, SteadyMillis


@dataclass(frozen=True, slots=True)
class Flow:
    """Records and bytes that a fragment has read and written on this node so far.

    Args:
        records_in: records read.
        records_out: results written.
        bytes_in: keys, values and headers of the records read, by the mean sizes of samples.
        bytes_out: keys and values of the results written.
    """

    records_in: int = 0
    records_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0

    def plus(self, other: "Flow") -> "Flow":
        """The sum."""
        return Flow(
            self.records_in + other.records_in,
            self.records_out + other.records_out,
            self.bytes_in + other.bytes_in,
            self.bytes_out + other.bytes_out,
        )

    def since(self, before: "Flow") -> "Flow":
        """The difference."""
        return Flow(
            self.records_in - before.records_in,
            self.records_out - before.records_out,
            self.bytes_in - before.bytes_in,
            self.bytes_out - before.bytes_out,
        )


@dataclass(frozen=True, slots=True)
class LaneUse:
    """CPU time that was measured of a fragment's own threads and tasks, in ns, and its flow.

    Args:
        planning_ns: Java thread of its queries: plans, code generation, checkpoints.
        tasks_ns: tasks of its Spark jobs.
        writing_ns: Python threads of its lanes: judging and writing batches, plans of batches.
        uses_python: whether its tasks run Python functions in other processes.
        flow: what it has read and written.
    """

    planning_ns: int = 0
    tasks_ns: int = 0
    writing_ns: int = 0
    uses_python: bool = False
    flow: Flow = field(default_factory=Flow)


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """CPU time of a node's processes so far, in ns.

    Args:
        node_ns: the node's own process.
        clients_ns: of that, threads of Kafka clients.
        java_ns: Spark's Java process.
        functions_ns: processes that Spark's tasks call Python functions in.
        other_ns: other child processes, such as the sender of heartbeats.
    """

    node_ns: int
    clients_ns: int
    java_ns: int
    functions_ns: int
    other_ns: int

    @property
    def total_ns(self) -> int:
        """All of it."""
        return self.node_ns + self.java_ns + self.functions_ns + self.other_ns


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters at one time.

    Args:
        at_ms: when they were read.
        processes: of the node.
        lanes: the fragments that have run on the node since its start.
        remote_tasks: whether tasks run on a cluster, and are no part of `processes`.
    """

    at_ms: SteadyMillis
    processes: ProcessTimes
    lanes: Mapping[FragmentId, LaneUse] = field(default_factory=lambda: MappingProxyType({}))
    remote_tasks: bool = False

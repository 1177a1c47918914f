"""Records of the load of nodes."""

from dataclasses import dataclass

from pipeline.catalog.records import Record
from pipeline.ids import FragmentId, FragmentName, Millis, NetworkId, NodeId, ParticipantId


@dataclass(frozen=True, slots=True)
class FragmentLoad:
    """Load of a fragment on a node: thousandths of a load unit in each second, unless said.

    Args:
        network: of the fragment.
        fragment: which one.
        planning: Java thread of its queries.
        tasks: tasks of its Spark jobs.
        writing: Python threads of its lanes.
        functions: its share of the Python processes of tasks.
        shared: its share of what runs for all fragments.
        records_in: records read, in each second; the next three likewise.
        records_out: results written.
        bytes_in: of the records read.
        bytes_out: of the results written.
        charged: thousandths of a load unit since the node's start.
    """

    network: NetworkId
    fragment: FragmentName
    planning: int
    tasks: int
    writing: int
    functions: int
    shared: int
    records_in: int
    records_out: int
    bytes_in: int
    bytes_out: int
    charged: int

    @property
    def id(self) -> FragmentId:
        """Id of the fragment."""
        return FragmentId(self.network, self.fragment)

    @property
    def total(self) -> int:
        """All that it is charged."""
        return self.planning + self.tasks + self.writing + self.functions + self.shared


@dataclass(frozen=True, slots=True)
class NodeLoadRecord(Record):
    """Load of a node, as it has last metered it (ephemeral).

    Args:
        node: which one.
        participant: whose.
        life: the node's start time, as in its record.
        at_ms: end of the span of time.
        span_ms: its length.
        core_permille: speed of a core, in thousandths of the reference core's.
        cores: that Spark's tasks use at the same time.
        overhead: of the node, in thousandths of a load unit in each second.
        overhead_charged: the same since the node's start, in thousandths of a load unit.
        total: of all its processes, in thousandths of a load unit in each second.
        metering: of that, the thread that meters.
        fragments: those that have run in the span of time, by name.
    """

    node: NodeId
    participant: ParticipantId
    life: Millis
    at_ms: Millis
    span_ms: int
    core_permille: int
    cores: int
    overhead: int
    overhead_charged: int
    total: int
    metering: int
    fragments: tuple[FragmentLoad, ...] = ()

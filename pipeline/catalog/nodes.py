"""Ephemeral records of nodes."""

from dataclasses import dataclass

from brokers.versioned_store import Create, Delete
from pipeline.catalog.codec import encode
from pipeline.catalog.formats import registration
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import NodeRecord
from pipeline.catalog.retrying import retrying
from pipeline.errors import RefusedError
from pipeline.ids import NodeId, ParticipantId


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes that are up. A node's record exists until the session of its process ends."""

    records: RecordStore

    def register(self, record: NodeRecord, replaces: NodeRecord | None = None) -> None:
        """Create the record of a node, for the duration of the store's session.

        Registering the same process again replaces its record, also from a new session.

        Args:
            record: the node.
            replaces: the record of an earlier process of the node that has certainly ended,
                although its session has not expired yet.

        Raises:
            RefusedError: another process is up under this name; names that process.
            NewerFormatError: the catalog is too new for this version.
        """
        path = self.records.znodes.node(record.participant, record.node)
        value = encode(record)

        def step() -> None:
            operations = list(registration(self.records, record.participant))
            found = self.records.values(path)
            existing = found.record(NodeRecord, path)
            if existing is not None:
                if existing not in (record, replaces):
                    raise name_taken(existing)
                operations.append(Delete(path, found[path].version))
            self.records.store.apply((*operations, Create(path, value, ephemeral=True)))

        retrying(step, f"node {record.node}")

    def get(self, participant: ParticipantId, node: NodeId) -> NodeRecord | None:
        """One node; None if it is not up."""
        return self.records.read(NodeRecord, self.records.znodes.node(participant, node))

    def all(self) -> tuple[NodeRecord, ...]:
        """The nodes of all participants that are up, by participant and name; three requests."""
        folders = map(self.records.znodes.nodes, self.records.participants())
        return self.records.read_below(NodeRecord, *folders)

    def of(self, participant: ParticipantId) -> tuple[NodeRecord, ...]:
        """The nodes of a participant that are up, by name; two requests."""
        return self.records.read_below(NodeRecord, self.records.znodes.nodes(participant))

    def names(self, participant: ParticipantId) -> tuple[NodeId, ...]:
        """The names of the nodes of a participant that are up, sorted; one request."""
        folder = self.records.znodes.nodes(participant)
        return tuple(map(NodeId, self.records.store.children(folder)))


def name_taken(existing: NodeRecord) -> RefusedError:
    """Error for a second process with the name of a node that is up."""
    return RefusedError(
        f"node {existing.node} is up already: process {existing.pid} on {existing.host}",
        place=f"participant {existing.participant}",
        hint="stop it, or give this node another name. One that was killed is forgotten after a "
        "few seconds.",
    )

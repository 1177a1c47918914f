"""Loads of nodes, as they meter them."""

from dataclasses import dataclass

from brokers.versioned_store import Create, Delete
from pipeline.catalog.codec import encode
from pipeline.catalog.load_records import NodeLoadRecord
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.retrying import retrying
from pipeline.ids import ParticipantId


@dataclass(frozen=True, slots=True)
class NodeLoads:
    """The last load of each node that is up."""

    records: RecordStore

    def report(self, load: NodeLoadRecord) -> None:
        """Replace what a node has reported, for the duration of the store's session."""
        store, znodes = self.records.store, self.records.znodes
        path, value = znodes.load(load.participant, load.node), encode(load)

        def step() -> None:
            there = store.get(path)
            if there is None:
                store.make_parents(znodes.loads(load.participant))
            # Made anew: one of an earlier session ends with that.
            removal = () if there is None else (Delete(path, there.version),)
            store.apply((*removal, Create(path, value, ephemeral=True)))

        retrying(step, f"load of node {load.node}")

    def all(self) -> tuple[NodeLoadRecord, ...]:
        """The loads of the nodes of all participants; three requests."""
        return self.of(*self.records.participants())

    def of(self, *participants: ParticipantId) -> tuple[NodeLoadRecord, ...]:
        """The loads of the nodes of participants, by name; two requests."""
        folders = map(self.records.znodes.loads, participants)
        return self.records.read_below(NodeLoadRecord, *folders)

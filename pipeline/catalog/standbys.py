"""Standbys: how far the followers of each node are whose fragments the node is a secondary of."""

from dataclasses import dataclass

from brokers.versioned_store import Create, Delete
from pipeline.catalog.codec import encode
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import NodeRecord, Standby, StandbysRecord
from pipeline.catalog.retrying import retrying


@dataclass(frozen=True, slots=True)
class Standbys:
    """The standbys of each participant, as its nodes report them; see `read_snapshot`."""

    records: RecordStore

    def report(self, node: NodeRecord, standbys: tuple[Standby, ...]) -> None:
        """Replace what a node has reported, for the duration of the store's session."""
        store, znodes = self.records.store, self.records.znodes
        path = znodes.standbys_of(node.participant, node.node)
        value = encode(StandbysRecord(node.started_at_ms, standbys))

        def step() -> None:
            there = store.get(path)
            if there is None:
                store.make_parents(znodes.standbys(node.participant))
            # Made anew: one of an earlier session ends with that.
            removal = () if there is None else (Delete(path, there.version),)
            store.apply((*removal, Create(path, value, ephemeral=True)))

        retrying(step, f"node {node.node}")

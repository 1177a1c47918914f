"""Drained nodes: they give up what others may run, and do not claim that until this is undone."""

from collections.abc import Mapping
from dataclasses import dataclass

from brokers.versioned_store import Operation
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import bump, put
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import DrainedRecord
from pipeline.catalog.retrying import retrying
from pipeline.catalog.transfers import without_transfers
from pipeline.ids import Millis, NodeId, ParticipantId


@dataclass(frozen=True, slots=True)
class Drains:
    """The drained nodes of each participant; a node need not be up."""

    records: RecordStore

    def of(self, participant: ParticipantId) -> Mapping[NodeId, Millis]:
        """The drained nodes of a participant, each with the time since when; one request."""
        found = self.records.read(DrainedRecord, self.records.znodes.drained(participant))
        return {} if found is None else dict(found.nodes)

    def drain(self, participant: ParticipantId, node: NodeId, now_ms: Millis) -> bool:
        """Drain a node; returns whether it was not drained before. Moves to it end."""
        return self._change(participant, node, now_ms)

    def undrain(self, participant: ParticipantId, node: NodeId) -> bool:
        """Let a node claim fragments again; returns whether it was drained."""
        return self._change(participant, node, None)

    def _change(self, participant: ParticipantId, node: NodeId, since_ms: Millis | None) -> bool:
        """Add a node, or remove it, in one step with the revision: nodes read the catalog then."""
        records, znodes = self.records, self.records.znodes
        of_all, path = znodes.networks(participant), znodes.drained(participant)
        of_transfers = znodes.transfers(participant)

        def step() -> bool:
            # the revision first: the step checks it
            stored = records.values(of_all, path, of_transfers)
            before = stored.record(DrainedRecord, path)
            nodes = {} if before is None else dict(before.nodes)
            if (node in nodes) is (since_ms is not None):
                return False
            if since_ms is None:
                del nodes[node]
            else:
                nodes[node] = since_ms
            after = encode(DrainedRecord(tuple(sorted(nodes.items()))))
            operations: tuple[Operation, ...] = (
                bump(of_all, stored.required(of_all)),
                put(path, after, stored.get(path)),
                *without_transfers(stored, of_transfers, lambda one: one.to == node),
            )
            records.store.apply(operations)
            return True

        return retrying(step, f"node {node}")

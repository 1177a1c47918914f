"""Transfers: moves of fragments to nodes, as users ask for them.

    wanted      the target builds a follower of the fragment
    ready       the follower is level: the owner stops after a batch, and releases the fragment
    released    it has no owner: the target claims it, which removes the transfer

Each step is one compare-and-set of the transfers, with the owner's record where it depends on that,
and with the revision, so that all nodes read the catalog at once. Every claim of the fragment, its
pause, and a drain of the target remove the transfer in their own step: a follower that was ended by
them must not be taken for level later.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from brokers.versioned_store import Check, Operation
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import bump, put
from pipeline.catalog.record_store import RecordStore, Values
from pipeline.catalog.records import FragmentRecord, OwnerRecord, Transfer, TransfersRecord
from pipeline.catalog.retrying import retrying
from pipeline.errors import RefusedError
from pipeline.ids import ParticipantId

NONE = TransfersRecord(())


@dataclass(frozen=True, slots=True)
class Transfers:
    """The transfers of each participant."""

    records: RecordStore

    def of(self, participant: ParticipantId) -> tuple[Transfer, ...]:
        """The transfers of a participant, by fragment; one request."""
        path = self.records.znodes.transfers(participant)
        return (self.records.read(TransfersRecord, path) or NONE).transfers

    def ask(self, transfer: Transfer, over: tuple[Transfer, ...] = ()) -> None:
        """Ask for a move; replaces one of the same fragment that is over.

        `over`: moves that the caller has found to be over, of this ownership.

        Raises:
            RefusedError: the fragment is being moved, or is there already, or its owner or its
            version has changed.
        """

        def changed(before: TransfersRecord, owner: OwnerRecord | None) -> TransfersRecord:
            if transfer.to == transfer.source:
                place = f"fragment {transfer.id}"
                raise RefusedError(f"node {transfer.to} runs it already", place=place)
            if not _is_owned(transfer, owner):
                raise RefusedError(
                    "its owner has changed meanwhile",
                    place=f"fragment {transfer.id}",
                    hint="run it again.",
                )
            other = before.of(transfer.id)
            is_over = other is not None and any(other.is_same(one) for one in over)
            if other is not None and other.epoch == transfer.epoch and not is_over:
                raise RefusedError(
                    f"it is being moved to node {other.to} already",
                    place=f"fragment {transfer.id}",
                    hint=f"`medusa move {transfer.id} --cancel` ends that.",
                )
            return before.having(transfer)

        self._change(transfer, changed)

    def note_ready(self, transfer: Transfer) -> bool:
        """Note that the follower is level; returns whether the transfer is still valid."""
        return self._update(transfer, replace(transfer, is_ready=True, problem=""))

    def note_failed(self, transfer: Transfer, problem: str) -> bool:
        """Note why a try of the follower has failed; returns whether the transfer is valid."""
        return self._update(transfer, replace(transfer, is_ready=False, problem=problem))

    def end(self, transfer: Transfer) -> bool:
        """End a transfer before its claim; returns whether there was one.

        If the owner has released the fragment by then, it has no node for a moment, and goes where
        its placement allows.
        """

        def changed(before: TransfersRecord, _: OwnerRecord | None) -> TransfersRecord:
            found = before.of(transfer.id)
            same = found is not None and found.is_same(transfer)
            return before.without(transfer.id) if same else before

        return self._change(transfer, changed)

    def _update(self, transfer: Transfer, after: Transfer) -> bool:
        def changed(before: TransfersRecord, owner: OwnerRecord | None) -> TransfersRecord:
            found = before.of(transfer.id)
            valid = found is not None and found.is_same(transfer) and _is_owned(transfer, owner)
            return before.having(after) if valid else before

        return self._change(transfer, changed)

    def _change(
        self,
        transfer: Transfer,
        changed: Callable[[TransfersRecord, OwnerRecord | None], TransfersRecord],
    ) -> bool:
        """Replace the transfers, in one step with the owner and the version that they are for."""
        records, znodes = self.records, self.records.znodes
        participant = transfer.network.participant
        name = transfer.network, transfer.fragment
        of_all, path = znodes.networks(participant), znodes.transfers(participant)
        of_owner, of_fragment = znodes.owner(*name), znodes.fragment(*name)

        def step() -> bool:
            stored = records.values(of_all, path, of_fragment, of_owner)  # the revision first
            before = stored.record(TransfersRecord, path) or NONE
            record = stored.record(FragmentRecord, of_fragment)
            there = record is not None and record.version == transfer.version
            owner = stored.record(OwnerRecord, of_owner) if there else None
            after = changed(before, owner)
            if after == before:
                return False
            operations: tuple[Operation, ...] = (
                *_unchanged(stored, of_fragment, of_owner),
                bump(of_all, stored.required(of_all)),
                put(path, encode(after), stored.get(path)),
            )
            records.store.apply(operations)
            return True

        return retrying(step, f"fragment {transfer.id}")


def without_transfers(
    stored: Values, path: str, is_over: Callable[[Transfer], bool]
) -> tuple[Operation, ...]:
    """The operation that removes transfers, if there are any; part of the step that ends them.

    Args:
        stored: the values, with that of the path if it exists.
        path: of the transfers.
        is_over: whether the step ends a transfer.
    """
    before = stored.record(TransfersRecord, path)
    if before is None or not any(map(is_over, before.transfers)):
        return ()
    left = TransfersRecord(tuple(one for one in before.transfers if not is_over(one)))
    return (put(path, encode(left), stored.get(path)),)


def _is_owned(transfer: Transfer, owner: OwnerRecord | None) -> bool:
    """Whether the ownership is that for which a transfer was asked."""
    return owner is not None and (owner.node, owner.epoch) == (transfer.source, transfer.epoch)


def _unchanged(stored: Values, *paths: str) -> tuple[Operation, ...]:
    return tuple(Check(path, stored[path].version) for path in paths if path in stored)

"""Owners of fragments: node and epoch, changed only by compare-and-set.

A claim makes a node the owner, a release ends that, for the node that is to run the fragment then.
"""

from collections.abc import Callable
from dataclasses import dataclass

from brokers.versioned_store import Operation
from pipeline.catalog.claim_steps import (
    check_participant,
    claim_step,
    next_epoch,
    release_step,
)
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.network_steps import no_fragment
from pipeline.catalog.networks import not_deployed
from pipeline.catalog.nodes import Nodes
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import (
    DrainedRecord,
    EpochRecord,
    FragmentRecord,
    NetworkRecord,
    NodeRecord,
    OwnerRecord,
    Transfer,
    TransfersRecord,
)
from pipeline.catalog.retrying import ATTEMPTS_MAX, LOST, retrying
from pipeline.catalog.secondaries import open_to
from pipeline.catalog.snapshot import Leaving
from pipeline.catalog.transfers import without_transfers
from pipeline.errors import RetryError, UnavailableError
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim that has succeeded.

    Args:
        epoch: of the new ownership.
        before: the owner that it replaces; None: the fragment had none.
        move: the transfer that it ends; None: the fragment was not being moved.
        on_suspicion: whether the owner before is up, and was suspected.
    """

    epoch: Epoch
    before: OwnerRecord | None
    move: Transfer | None
    on_suspicion: bool = False


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of the fragments."""

    records: RecordStore

    def get(self, network: NetworkId, fragment: FragmentName) -> OwnerRecord | None:
        """The owner of a fragment; None before the first claim since it was deployed."""
        return self.records.read(OwnerRecord, self.records.znodes.owner(network, fragment))

    def of(self, *networks: NetworkId) -> dict[FragmentId, OwnerRecord]:
        """The owners of the claimed fragments of networks; two requests."""
        return self.records.read_of_fragments(OwnerRecord, self.records.znodes.owner, networks)

    def claim(
        self,
        network: NetworkId,
        fragment: FragmentName,
        by: NodeRecord,
        now_ms: Millis,
        *,
        written: Epoch = NO_EPOCH,
        is_suspected: Callable[[NodeRecord], bool] = lambda _: False,
    ) -> Claim:
        """Claim a fragment for a node in its present life.

        Of all claims of an epoch exactly one succeeds. A lost claim is not retried here: its caller
        reads the winner first.

        A move of the fragment ends by it.

        Args:
            network: of the fragment.
            fragment: which one.
            by: the node.
            now_ms: the present.
            written: the epoch of the fragment's last commit marker; the new epoch exceeds it, even
                if the catalog's counter is below it.
            is_suspected: whether a node that is up is taken for one that is down: Kafka fences it.

        Raises:
            RetryError: another node was first, or owns the fragment, is alive and is not suspected;
                or the node is drained, does not own it, and another one that is up may run it.
            RefusedError: the fragment does not exist, or another participant owns its network.
        """
        records, znodes, place = self.records, self.records.znodes, f"fragment {network}.{fragment}"
        of_network, of_fragment = znodes.network(network), znodes.fragment(network, fragment)
        of_epoch, of_owner = znodes.epoch(network, fragment), znodes.owner(network, fragment)
        of_drained = znodes.drained(by.participant)
        of_transfers = znodes.transfers(network.participant)
        found = records.values(
            of_fragment, of_network, of_epoch, of_owner, of_drained, of_transfers
        )
        if of_fragment not in found:
            names = (one.fragment for one in records.fragment_ids((network,)))
            raise no_fragment(network, fragment, names)
        if of_network not in found:
            raise not_deployed(records, network)
        check_participant(found.required_record(NetworkRecord, of_network), by.participant)
        current = found.record(OwnerRecord, of_owner)
        on_suspicion = self._is_up(current, by, is_suspected, place)
        if current is None or current.node != by.node:
            record = found.required_record(FragmentRecord, of_fragment)
            drained = found.record(DrainedRecord, of_drained)
            self._check_drained(record, by, drained, is_suspected, place)
        epoch = next_epoch(found.record(EpochRecord, of_epoch), written)
        claimed = OwnerRecord(by.node, by.participant, epoch, now_ms, by.started_at_ms)
        named, was = FragmentId(network, fragment), (of_fragment, of_epoch, of_owner)
        for _ in range(ATTEMPTS_MAX):
            claiming = claim_step(znodes, named, claimed, found)
            moves = without_transfers(found, of_transfers, lambda one: one.id == named)
            try:
                self._apply((*claiming, *moves), of_owner, claimed)
            except LOST:
                now = records.values(*was, of_transfers)
                if any(now.get(path) != found.get(path) for path in was):
                    break
                found = now  # only moves of other fragments have changed
            else:
                before = found.record(TransfersRecord, of_transfers)
                return Claim(epoch, current, before.of(named) if before else None, on_suspicion)
        raise RetryError(
            f"epoch {epoch} was claimed concurrently, or the fragment was changed", place=place
        )

    def _apply(self, operations: tuple[Operation, ...], path: str, claimed: OwnerRecord) -> None:
        """Apply a claim; one that is there although its answer was lost has succeeded.

        Raises:
            UnavailableError: it is not there, or whether it is cannot be read.
        """
        try:
            self.records.store.apply(operations)
        except UnavailableError:
            if self.records.read(OwnerRecord, path) != claimed:
                raise

    def _is_up(
        self,
        owner: OwnerRecord | None,
        by: NodeRecord,
        is_suspected: Callable[[NodeRecord], bool],
        place: str,
    ) -> bool:
        """Whether another node owns a fragment that is up, and is suspected.

        Raises:
            RetryError: it is up, and not suspected.
        """
        if owner is None or owner.node == by.node:
            return False
        up = Nodes(self.records).get(owner.participant, owner.node)
        if up is not None and not is_suspected(up):
            raise RetryError(
                f"node {owner.node} owns it (epoch {owner.epoch}) and is alive", place=place
            )
        return up is not None

    def _check_drained(
        self,
        record: FragmentRecord,
        by: NodeRecord,
        drained: DrainedRecord | None,
        is_suspected: Callable[[NodeRecord], bool],
        place: str,
    ) -> None:
        """Check that a node is not drained, or that no other one may take a fragment on.

        Raises:
            RetryError: it is, and one that is up, not drained and not suspected may run it.
        """
        closed = {} if drained is None else dict(drained.nodes)
        if by.node not in closed:
            return
        up = (one for one in Nodes(self.records).of(by.participant) if not is_suspected(one))
        others = [one.node for one in open_to(record, up, closed) if one.node not in closed]
        if others:
            hint = f"these may run it: {', '.join(others)}."
            raise RetryError(f"node {by.node} is drained", place=place, hint=hint)

    def release(self, fragment: FragmentId, leaving: Leaving) -> bool:
        """Give a fragment up, for another node to claim; its lane must have stopped.

        Everything that the decision was made by is compared: a move that was cancelled, or has
        ended, an undrained node and a deploy leave the fragment with its owner. All of them raise
        the revision, which the step checks.

        Returns:
            Whether it was released: False if something of that has changed.
        """
        records, znodes = self.records, self.records.znodes
        name, participant = (fragment.network, fragment.fragment), fragment.network.participant
        of_all, of_owner = znodes.networks(participant), znodes.owner(*name)
        of_status, of_fragment = znodes.status(*name), znodes.fragment(*name)
        of_transfers, of_drained = znodes.transfers(participant), znodes.drained(participant)

        def step() -> bool:
            revision = records.store.get(of_all)  # read first: the step checks it
            found = records.values(of_owner, of_status, of_fragment, of_transfers, of_drained)
            transfers = found.record(TransfersRecord, of_transfers)
            drained = found.record(DrainedRecord, of_drained)
            is_same = (
                found.record(OwnerRecord, of_owner) == leaving.owner
                and found.record(FragmentRecord, of_fragment) == leaving.record
                and (transfers.of(fragment) if transfers else None) == leaving.transfer
                and (drained is not None and leaving.owner.node in dict(drained.nodes))
                is leaving.is_drained
            )
            if revision is None or not is_same:
                return False
            status = found.record(FragmentStatus, of_status)
            records.store.apply(release_step(znodes, fragment, status, (revision, found)))
            return True

        return retrying(step, f"fragment {fragment}")

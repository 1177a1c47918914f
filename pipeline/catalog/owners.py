"""Ownership of fragments: node and epoch, changed only by compare-and-set."""

from dataclasses import dataclass

from pipeline.catalog.claim_steps import (
    Claim,
    check_claimable,
    check_participant,
    claim_step,
    next_epoch,
)
from pipeline.catalog.network_steps import no_fragment, not_deployed
from pipeline.catalog.networks import Networks
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import EpochRecord, NetworkRecord, NodeRecord, OwnerRecord
from pipeline.catalog.retrying import LOST
from pipeline.errors import RetryError
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentId,
    FragmentName,
    Millis,
    NetworkName,
    NodeId,
    ParticipantId,
)


@dataclass(frozen=True, slots=True)
class Owners:
    """The owners of the fragments."""

    records: RecordStore

    def get(self, network: NetworkName, fragment: FragmentName) -> OwnerRecord | None:
        """The owner of a fragment; None before the first claim since it was deployed."""
        return self.records.read(OwnerRecord, self.records.znodes.owner(network, fragment))

    def of(self, *networks: NetworkName) -> dict[FragmentId, OwnerRecord]:
        """The owners of the fragments of networks; two requests. Without those never claimed."""
        return self.records.read_of_fragments(OwnerRecord, self.records.znodes.owner, networks)

    def claim(
        self,
        network: NetworkName,
        fragment: FragmentName,
        node: NodeId,
        participant: ParticipantId,
        now_ms: Millis,
        *,
        written: Epoch = NO_EPOCH,
    ) -> Epoch:
        """Take a fragment over: its next epoch is this node's.

        Of all claims of an epoch exactly one is done. A claim that lost is not tried again here:
        its caller looks at the winner first.

        `written`: the epoch of the fragment's last commit marker; the new epoch exceeds it, even
        where the catalog's counter is below it.

        Raises:
            RetryError: another node was first, or owns it and is alive.
            RefusedError: there is no such fragment, or another participant owns its network.
        """
        records, znodes, place = self.records, self.records.znodes, f"fragment {network}.{fragment}"
        of_network, of_fragment = znodes.network(network), znodes.fragment(network, fragment)
        of_epoch, of_owner = znodes.epoch(network, fragment), znodes.owner(network, fragment)
        of_node = znodes.node(node)
        found = records.values((of_fragment, of_network, of_epoch, of_owner, of_node))
        stored = found[of_fragment]
        if stored is None:
            names = (one.fragment for one in records.fragment_ids((network,)))
            raise no_fragment(network, fragment, names)
        deployed = records.decode_optional(NetworkRecord, found[of_network], of_network)
        if deployed is None:
            raise not_deployed(network, (one.network for one in Networks(records).all()))
        check_participant(deployed, participant)
        current = records.decode_optional(OwnerRecord, found[of_owner], of_owner)
        if current is not None and current.node != node:
            alive = records.read(NodeRecord, znodes.node(current.node)) is not None
            check_claimable(current, node, place, owner_alive=alive)
        last = records.decode_optional(EpochRecord, found[of_epoch], of_epoch)
        mine = records.decode_optional(NodeRecord, found[of_node], of_node)
        life = None if mine is None else mine.started_at_ms
        claimed = OwnerRecord(node, participant, next_epoch(last, written), now_ms, life)
        claim = Claim(network, fragment, claimed)
        try:
            records.store.apply(claim_step(znodes, claim, stored, found[of_owner], found[of_epoch]))
        except LOST as error:
            raise RetryError(
                f"somebody else was first to claim epoch {claimed.epoch}, or changed the fragment",
                place=place,
            ) from error
        return claimed.epoch

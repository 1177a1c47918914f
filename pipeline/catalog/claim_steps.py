"""Claims of fragments as pure functions: stored values → the operations of one atomic step.

1. An epoch is taken by replacing the fragment's epoch counter. So of all claims that read the same
   counter exactly one is done. The counter is never removed.
2. A claim also checks the fragment's record: one that was undeployed meanwhile gets no owner.
"""

from dataclasses import dataclass

from brokers.versioned_store import Check, Operation, Versioned
from pipeline.catalog.codec import encode
from pipeline.catalog.network_steps import put
from pipeline.catalog.records import EpochRecord, NetworkRecord, OwnerRecord
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import NO_EPOCH, Epoch, FragmentName, NetworkName, NodeId, ParticipantId
from pipeline.names import Znodes


@dataclass(frozen=True, slots=True)
class Claim:
    """The owner that a fragment is to get."""

    network: NetworkName
    fragment: FragmentName
    owner: OwnerRecord


def claim_step(
    znodes: Znodes,
    claim: Claim,
    fragment: Versioned,
    owner: Versioned | None,
    epoch: Versioned | None,
) -> tuple[Operation, ...]:
    """Take the epoch of `claim`: replaces the counter and the owner, or neither."""
    counter = encode(EpochRecord(claim.owner.epoch))
    return (
        Check(znodes.fragment(claim.network, claim.fragment), fragment.version),
        put(znodes.epoch(claim.network, claim.fragment), counter, epoch),
        put(znodes.owner(claim.network, claim.fragment), encode(claim.owner), owner),
    )


def next_epoch(counter: EpochRecord | None, written: Epoch) -> Epoch:
    """The epoch after every earlier one: those claimed, and those that wrote markers.

    A marker of an epoch that was never claimed shows that ZooKeeper was restored from an older
    state: the counter went back, and commit markers did not.

    Args:
        counter: the last epoch claimed, as stored; None: none.
        written: the epoch of the fragment's last commit marker; `NO_EPOCH`: there is none.
    """
    return Epoch(max(written, NO_EPOCH if counter is None else counter.epoch) + 1)


def check_participant(network: NetworkRecord, participant: ParticipantId) -> None:
    """Make sure that a node may run a network's fragments: both are of the same participant.

    Raises:
        RefusedError: another participant owns the network.
    """
    if network.owner != participant:
        raise RefusedError(
            f"it belongs to participant {network.owner}, the node to participant {participant}",
            place=f"network {network.network}",
            hint=f"start a node with `participant: {network.owner}`.",
        )


def check_claimable(
    current: OwnerRecord | None, node: NodeId, place: str, *, owner_alive: bool
) -> None:
    """Make sure that a node may claim: nobody owns it, it does itself, or the owner is gone.

    Raises:
        RetryError: another node that is alive owns it.
    """
    if current is not None and current.node != node and owner_alive:
        raise RetryError(
            f"node {current.node} owns it (epoch {current.epoch}) and is alive", place=place
        )

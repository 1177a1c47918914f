"""Claims of fragments as pure functions: stored values → the operations of one atomic step.

1. A claim replaces the fragment's epoch counter by compare-and-set. So of all claims that read the
   same counter exactly one succeeds. The counter is never removed.
2. A claim also checks the fragment's record: a concurrently undeployed fragment gets no owner.
3. A release removes the owner, and raises the revision, so that all nodes read the catalog at once.
   The epoch counter stays.
"""

from collections.abc import Mapping
from dataclasses import replace

from brokers.versioned_store import Check, Delete, Operation, Versioned
from pipeline.catalog.codec import encode
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.network_steps import bump, put
from pipeline.catalog.records import EpochRecord, NetworkRecord, OwnerRecord
from pipeline.errors import RefusedError
from pipeline.ids import NO_EPOCH, Epoch, FragmentId, ParticipantId
from pipeline.names import Znodes


def claim_step(
    znodes: Znodes, fragment: FragmentId, owner: OwnerRecord, stored: Mapping[str, Versioned]
) -> tuple[Operation, ...]:
    """Claim the epoch of `owner`: replaces the counter and the owner, or neither.

    `stored`: values of the fragment's existing paths, by path; contains its record.
    """
    name = fragment.network, fragment.fragment
    of_fragment, of_epoch, of_owner = (
        znodes.fragment(*name),
        znodes.epoch(*name),
        znodes.owner(*name),
    )
    return (
        Check(of_fragment, stored[of_fragment].version),
        put(of_epoch, encode(EpochRecord(owner.epoch)), stored.get(of_epoch)),
        put(of_owner, encode(owner), stored.get(of_owner)),
    )


def release_step(
    znodes: Znodes,
    fragment: FragmentId,
    status: FragmentStatus | None,
    stored: tuple[Versioned, Mapping[str, Versioned]],
) -> tuple[Operation, ...]:
    """Remove the owner of a fragment; no node has it then, and its status says so.

    Args:
        znodes: the paths.
        fragment: its id.
        status: its last status; None: there is none.
        stored: the participant's revision; the values of the owner's and the status' paths.
    """
    revision, values = stored
    name = fragment.network, fragment.fragment
    of_owner, of_status = znodes.owner(*name), znodes.status(*name)
    operations: list[Operation] = [
        bump(znodes.networks(fragment.network.participant), revision),
        Delete(of_owner, values[of_owner].version),
    ]
    if status is not None:
        # Any node may report it then, also one that starts it and has not claimed it yet.
        nobodys = replace(status, epoch=NO_EPOCH, state=LaneState.PENDING, last_error="")
        pending = encode(nobodys)
        operations.append(put(of_status, pending, values[of_status]))
    return tuple(operations)


def next_epoch(counter: EpochRecord | None, written: Epoch) -> Epoch:
    """The epoch above all earlier ones: claimed ones, and ones that wrote markers.

    A marker whose epoch exceeds the counter shows that ZooKeeper was restored from an older state:
    the counter decreased, and commit markers remained.

    Args:
        counter: the stored counter, the last epoch claimed; None: none.
        written: the epoch of the fragment's last commit marker; `NO_EPOCH`: there is none.
    """
    return Epoch(max(written, NO_EPOCH if counter is None else counter.epoch) + 1)


def check_participant(network: NetworkRecord, participant: ParticipantId) -> None:
    """Check that a node may run a network's fragments: both are of the same participant.

    Raises:
        RefusedError: another participant owns the network.
    """
    owner = network.network.participant
    if owner != participant:
        raise RefusedError(
            f"it belongs to participant {owner}, the node to participant {participant}",
            place=f"network {network.network}",
            hint=f"start a node with `participant: {owner}`.",
        )

"""Takeover of a fragment that another node has owned: its times, for the event log. Pure."""

from dataclasses import dataclass
from itertools import pairwise

from pipeline.agent.suspicions import Noticed
from pipeline.catalog.fragment_owners import Claim
from pipeline.ids import BatchId, NodeId, SteadyMillis
from pipeline.markers.commit_marker import NO_BATCH

PARTS = ("noticed", "claimed", "fenced", "first_batch", "first_result")
"""The parts of a takeover, in their order."""


@dataclass(frozen=True, slots=True)
class Takeover:
    """A takeover that is going on; all times are steady ones of this node, None: not known (yet).

    Args:
        source: the node that owned the fragment before.
        why: why it was claimed, in words.
        noticed: how the loss was noticed.
        claimed_ms: when the fragment was claimed.
        fenced_ms: when Kafka had fenced the owner before.
        last_batch: the number of the last batch of the owner before.
        first_batch_ms: when the first new batch was committed.
        first_result_ms: when the first new result was.
    """

    source: NodeId
    why: str
    noticed: Noticed | None
    claimed_ms: SteadyMillis
    fenced_ms: SteadyMillis | None = None
    last_batch: BatchId = NO_BATCH
    first_batch_ms: SteadyMillis | None = None
    first_result_ms: SteadyMillis | None = None

    @property
    def parts_ms(self) -> tuple[tuple[str, int], ...]:
        """Duration of each part, since the end of the one before it."""
        signed_ms = None if self.noticed is None else self.noticed.sign_ms
        noticed_ms = None if self.noticed is None else self.noticed.at_ms
        begun, *ends = (
            signed_ms,
            noticed_ms,
            self.claimed_ms,
            self.fenced_ms,
            self.first_batch_ms,
            self.first_result_ms,
        )
        spans = zip(PARTS, pairwise((begun, *ends)), strict=True)
        return tuple(
            (name, max(0, end - since))
            for name, (since, end) in spans
            if since is not None and end is not None
        )


def why_taken(claim: Claim) -> str:
    """Why a fragment was claimed whose owner was another node."""
    before = claim.before
    if before is None:
        return ""
    how = "suspected to have failed" if claim.on_suspicion else "down"
    return f"node {before.node} is {how}"


def takeover(
    claim: Claim, by: NodeId, noticed: Noticed | None, claimed_ms: SteadyMillis
) -> Takeover | None:
    """The takeover that begins with a claim; None: no other node has owned the fragment."""
    before = claim.before
    if before is None or before.node == by:
        return None
    return Takeover(before.node, why_taken(claim), noticed, claimed_ms)

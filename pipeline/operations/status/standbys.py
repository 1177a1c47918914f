"""Which nodes follow a fragment as its secondaries, and how far they are. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.catalog.records import Standby
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.ids import FragmentId, Millis, NodeId
from pipeline.lanes.follower_phases import FollowerPhase


@dataclass(frozen=True, slots=True)
class ObservedStandby:
    """A secondary of a fragment.

    Args:
        node: its name.
        phase: of its follower; `ABSENT` if it has reported none.
        problem: why the last try of the follower has failed; empty: it has not.
        since_ms: since when it is so; None: it has reported nothing.
        reached_ms: up to when the owner has written what its state contains; None: it contains all
            or nearly all of it, or nothing.
        state_bytes: size of the copy of the checkpoint that it has; 0: it has none.
        is_rehearsed: whether it has rehearsed the fragment as it is now.
    """

    node: NodeId
    phase: FollowerPhase = FollowerPhase.ABSENT
    problem: str = ""
    since_ms: Millis | None = None
    reached_ms: Millis | None = None
    state_bytes: int = 0
    is_rehearsed: bool = False


def observed_standbys(
    found: CatalogSnapshot,
) -> Mapping[FragmentId, tuple[ObservedStandby, ...]]:
    """The secondaries of the fragments that should run and have some, the first one first."""
    reported = {(one.id, node): one for node, every in found.standbys.items() for one in every}
    return {
        fragment: tuple(_observed(node, reported.get((fragment, node))) for node in nodes)
        for fragment, nodes in found.secondaries().items()
    }


def _observed(node: NodeId, standby: Standby | None) -> ObservedStandby:
    if standby is None:
        return ObservedStandby(node)
    return ObservedStandby(
        node,
        standby.phase,
        standby.problem,
        standby.since_ms,
        standby.reached_ms,
        standby.state_bytes,
        standby.is_rehearsed,
    )

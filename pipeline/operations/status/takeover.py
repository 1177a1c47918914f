"""What a takeover of a fragment would cost now. Pure.

From what its secondaries have, and from how long its newest takeover and start took.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.event_log.timings import NO_TIMINGS, Timings
from pipeline.ids import Millis, NetworkVersion, NodeId
from pipeline.lanes.follower_phases import LEVEL, FollowerPhase
from pipeline.operations.status.standbys import ObservedStandby
from pipeline.reliability import Mode, Reliability


class TakeoverWay(Enum):
    """What the node does that takes a fragment over."""

    GOES_ON = "goes on"
    """It goes on in the query of a follower that is level."""
    READS_SINCE = "reads what came since"
    """It begins from the state that it has, and reads what came since."""
    STARTS = "starts"
    """There is no state to build."""
    BUILDS = "builds the state"
    """It builds the state from the log, if the fragment has one."""


_HAS_STATE = frozenset(
    {FollowerPhase.FOLLOWING, FollowerPhase.LEVEL, FollowerPhase.CATCHING_UP, FollowerPhase.TAKEN}
)


@dataclass(frozen=True, slots=True)
class TakeoverNow:
    """What a takeover would cost.

    Args:
        way: what the node does that takes it over.
        node: which one; None: none stands by.
        reached_ms: up to when the owner has written what that node has; None: all of it, or it has
            nothing.
        state_bytes: size of the state, by its newest copy; 0: not known.
        timings: how long the newest ones took, as far as the event log was read.
    """

    way: TakeoverWay
    node: NodeId | None = None
    reached_ms: Millis | None = None
    state_bytes: int = 0
    timings: Timings = NO_TIMINGS


def takeover_now(
    reliability: Reliability,
    standbys: Sequence[ObservedStandby],
    timings: Timings,
    *,
    has_state: bool = True,
) -> TakeoverNow:
    """What a takeover of a fragment would cost, if its owner failed now.

    Args:
        reliability: of the fragment.
        standbys: its secondaries, the first one first.
        timings: of its newest takeover and start.
        has_state: whether it has a state, if that is known.
    """
    size = max((one.state_bytes for one in standbys), default=0)
    level = [one for one in standbys if one.phase in LEVEL]
    first = next(iter([*level, *(one for one in standbys if one.phase in _HAS_STATE)]), None)
    if first is None:
        way = TakeoverWay.BUILDS if has_state else TakeoverWay.STARTS
        return TakeoverNow(way, state_bytes=size, timings=timings)
    if first.phase is FollowerPhase.WAITING:
        way = TakeoverWay.STARTS
    elif first.phase is FollowerPhase.LEVEL and reliability.mode is Mode.ACTIVE_STANDBY:
        way = TakeoverWay.GOES_ON
    else:
        way = TakeoverWay.READS_SINCE
    return TakeoverNow(way, first.node, first.reached_ms, size, timings)


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a deployed fragment.

    Args:
        version: of its network that last changed it.
        digest: of its plan.
        reliability: as deployed.
        takeover: what a takeover would cost now.
        waits: how long its results usually wait for input; None: too little was measured.
    """

    version: NetworkVersion
    digest: str
    reliability: Reliability
    takeover: TakeoverNow
    waits: UsualWaits | None = None

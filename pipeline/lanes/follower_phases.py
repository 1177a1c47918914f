"""State machine of a follower: phases, events, and a transition table.

The diagram in `docs/lane-states.md` is made from `TRANSITIONS`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis


class FollowerPhase(Enum):
    """Phase of a follower."""

    ABSENT = "absent"
    BUILDING = "building"
    """The state is built, up to a commit marker, or fetched; or it waits for its turn."""
    WAITING = "waiting"
    """There is no state to build: the fragment has none, or it has not run a batch."""
    FOLLOWING = "following"
    """It repeats the owner's batches."""
    LEVEL = "level"
    """It has repeated all of them or all but one, or what is left is of a short time: the owner may
    release the fragment."""
    CATCHING_UP = "catching up"
    """It was far behind: what is missing is read at once."""
    REPAIRING = "repairing"
    """A batch had another outcome: the state is built again, from the last batch that agreed if
    that is of use."""
    DISCARDED = "discarded"
    """It has failed; it is begun again, or only waits for its end."""
    TAKEN = "taken"
    """The lane of its node has claimed, and goes on in its query, or from its state."""


class FollowerEvent(Enum):
    """Event of a follower."""

    BEGUN = "begun"
    BUILT = "built"
    NOTHING_TO_BUILD = "nothing to build"
    REPEATED_ALL = "repeated all"
    FELL_BEHIND = "fell behind"
    DIFFERED = "differed"
    """A batch has had another outcome than the owner's."""
    FAILED = "failed"
    CLAIMED = "claimed"
    """Its node has claimed the fragment."""
    ENDED = "ended"
    """The move has ended, the node is no secondary any more, or it stops."""


_RUNNING: Final = (
    FollowerPhase.BUILDING,
    FollowerPhase.WAITING,
    FollowerPhase.FOLLOWING,
    FollowerPhase.LEVEL,
    FollowerPhase.CATCHING_UP,
    FollowerPhase.REPAIRING,
)
LEVEL: Final = frozenset({FollowerPhase.WAITING, FollowerPhase.LEVEL})
"""Phases in which the owner may release the fragment."""
TRANSITIONS: Mapping[tuple[FollowerPhase, FollowerEvent], FollowerPhase] = MappingProxyType(
    {
        (FollowerPhase.ABSENT, FollowerEvent.BEGUN): FollowerPhase.BUILDING,
        (FollowerPhase.BUILDING, FollowerEvent.BUILT): FollowerPhase.FOLLOWING,
        (FollowerPhase.BUILDING, FollowerEvent.NOTHING_TO_BUILD): FollowerPhase.WAITING,
        (FollowerPhase.FOLLOWING, FollowerEvent.REPEATED_ALL): FollowerPhase.LEVEL,
        (FollowerPhase.FOLLOWING, FollowerEvent.FELL_BEHIND): FollowerPhase.CATCHING_UP,
        (FollowerPhase.LEVEL, FollowerEvent.FELL_BEHIND): FollowerPhase.CATCHING_UP,
        (FollowerPhase.CATCHING_UP, FollowerEvent.BUILT): FollowerPhase.FOLLOWING,
        (FollowerPhase.FOLLOWING, FollowerEvent.DIFFERED): FollowerPhase.REPAIRING,
        (FollowerPhase.LEVEL, FollowerEvent.DIFFERED): FollowerPhase.REPAIRING,
        (FollowerPhase.REPAIRING, FollowerEvent.BUILT): FollowerPhase.FOLLOWING,
        **{(one, FollowerEvent.FAILED): FollowerPhase.DISCARDED for one in _RUNNING},
        (FollowerPhase.DISCARDED, FollowerEvent.BEGUN): FollowerPhase.BUILDING,
        **{(one, FollowerEvent.CLAIMED): FollowerPhase.TAKEN for one in _RUNNING},
        (FollowerPhase.DISCARDED, FollowerEvent.CLAIMED): FollowerPhase.TAKEN,
        **{(one, FollowerEvent.ENDED): FollowerPhase.ABSENT for one in _RUNNING},
        (FollowerPhase.DISCARDED, FollowerEvent.ENDED): FollowerPhase.ABSENT,
    }
)


@dataclass(frozen=True, slots=True)
class Reached:
    """How far the state of a follower is; see `Standby` in `pipeline/catalog/records.py`."""

    at_ms: Millis | None = None
    state_bytes: int = 0


class FollowerCourse:
    """The phase of one follower. Only its own thread changes it.

    Args:
        place: names the fragment.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self.phase = FollowerPhase.ABSENT

    @property
    def is_level(self) -> bool:
        """Whether the owner may release the fragment."""
        return self.phase in LEVEL

    def move(self, event: FollowerEvent) -> None:
        """Change the phase.

        Raises:
            BrokenInvariantError: the event is illegal in this phase; nothing is changed.
        """
        after = TRANSITIONS.get((self.phase, event))
        if after is None:
            message = f"a follower that is {self.phase.value} cannot have {event.value}"
            raise BrokenInvariantError(message, place=self._place)
        self.phase = after

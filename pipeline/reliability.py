"""Reliability of a fragment: how another node goes on with it when its own one fails."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

SECONDARIES = 1
SECONDARIES_MAX = 5


class Mode(Enum):
    """What other nodes have done when the node of a fragment fails; the strictest is last."""

    UPSTREAM_BACKUP = "upstream_backup"
    """Nothing: one of them builds the state from the log."""
    ACTIVE_STANDBY = "active_standby"
    """The secondaries have repeated its batches: one of them goes on."""


_STRICTNESS = tuple(Mode)


@dataclass(frozen=True, slots=True)
class Reliability:
    """How reliable a fragment is.

    Args:
        mode: what other nodes do for it.
        secondaries: the number of other nodes that follow it; 0 with `upstream_backup`.
    """

    mode: Mode
    secondaries: int = 0

    def __str__(self) -> str:
        if not self.secondaries:
            return self.mode.value
        what = "secondary" if self.secondaries == 1 else "secondaries"
        return f"{self.mode.value}, {self.secondaries} {what}"

    @property
    def active_standbys(self) -> int:
        """The number of other nodes that repeat its batches."""
        return self.secondaries if self.mode is Mode.ACTIVE_STANDBY else 0


UPSTREAM_BACKUP = Reliability(Mode.UPSTREAM_BACKUP)
"""The default."""


def with_active_standbys(number: int) -> Reliability:
    """The reliability of a fragment whose batches so many other nodes repeat."""
    return Reliability(Mode.ACTIVE_STANDBY, number) if number else UPSTREAM_BACKUP


def strictest(those: Iterable[Reliability], default: Reliability) -> Reliability:
    """The one with the strictest mode, and of these the one with the most secondaries.

    `default`: of none at all.
    """
    return max(those, key=_strictness, default=default)


def _strictness(one: Reliability) -> tuple[int, int]:
    return _STRICTNESS.index(one.mode), one.secondaries

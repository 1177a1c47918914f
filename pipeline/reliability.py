"""Reliability of a fragment: how another node goes on with it when its own one fails.

Precise and rollback recovery are those of Hwang et al., "High-Availability Algorithms for
Distributed Stream Processing" (ICDE 2005).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from pipeline import durations

SECONDARIES = 1
SECONDARIES_MAX = 5
CHECKPOINT_EVERY_MS = 10_000
CHECKPOINT_EVERY_LEAST_MS = 1_000
CHECKPOINT_EVERY_MOST_MS = 86_400_000


class Mode(Enum):
    """What other nodes have done when the node of a fragment fails; the strictest is last."""

    AMNESIA = "amnesia"
    """Nothing: if its state cannot be continued, it begins with an empty one at the newest offsets;
    results that touch what it has left out are not published."""
    UPSTREAM_BACKUP = "upstream_backup"
    """Nothing: one of them builds the state from the log."""
    PASSIVE_STANDBY = "passive_standby"
    """The secondaries have copies of its checkpoint: one of them goes on from the newest."""
    ACTIVE_STANDBY = "active_standby"
    """The secondaries have repeated its batches: one of them goes on."""


class Recovery(Enum):
    """What a reader sees of a failure besides a pause; the strictest is last."""

    ROLLBACK = "rollback"
    """No result is lost; some may be written again, each with the id that it had."""
    PRECISE = "precise"
    """Nothing: a batch and its results become visible in one transaction."""


_STRICTNESS = tuple(Mode)
_RECOVERIES = tuple(Recovery)


@dataclass(frozen=True, slots=True)
class Reliability:
    """How reliable a fragment is.

    Args:
        mode: what other nodes do for it.
        secondaries: the number of other nodes that do it; 0 with `amnesia` and `upstream_backup`.
        checkpoint_every_ms: how often its checkpoint is copied; 0 but with `passive_standby`.
        recovery: as declared with it; None: it is not. A fragment has it apart from this: it
            decides how its own lane writes.
    """

    mode: Mode
    secondaries: int = 0
    checkpoint_every_ms: int = 0
    recovery: Recovery | None = None

    def __str__(self) -> str:
        if not self.secondaries:
            return self.mode.value
        what = "secondary" if self.secondaries == 1 else "secondaries"
        text = f"{self.mode.value}, {self.secondaries} {what}"
        if not self.checkpoint_every_ms:
            return text
        return f"{text}, a checkpoint every {durations.format(self.checkpoint_every_ms)}"

    @property
    def active_standbys(self) -> int:
        """The number of other nodes that repeat its batches."""
        return self.secondaries if self.mode is Mode.ACTIVE_STANDBY else 0

    @property
    def passive_standbys(self) -> int:
        """The number of other nodes that have a copy of its checkpoint."""
        return self.secondaries if self.mode is Mode.PASSIVE_STANDBY else 0


UPSTREAM_BACKUP = Reliability(Mode.UPSTREAM_BACKUP)
"""The default."""
AMNESIA = Reliability(Mode.AMNESIA)


def with_active_standbys(number: int) -> Reliability:
    """The reliability of a fragment whose batches so many other nodes repeat."""
    return Reliability(Mode.ACTIVE_STANDBY, number) if number else UPSTREAM_BACKUP


def with_passive_standbys(number: int, every_ms: int = CHECKPOINT_EVERY_MS) -> Reliability:
    """The reliability of a fragment of whose checkpoint so many other nodes have copies."""
    return Reliability(Mode.PASSIVE_STANDBY, number, every_ms) if number else UPSTREAM_BACKUP


def strictest(those: Iterable[Reliability], default: Reliability) -> Reliability:
    """The one with the strictest mode; of these that with the most secondaries; the most often.

    `default`: of none at all. Without a recovery: see `most_precise`.
    """
    return replace(max(those, key=_strictness, default=default), recovery=None)


def most_precise(those: Iterable[Reliability | None], default: Reliability) -> Recovery:
    """The strictest recovery that is declared; if none is, that of `default`, or `PRECISE`."""
    declared = (one.recovery for one in those if one is not None)
    found = tuple(one for one in declared if one is not None)
    return max(found, key=_RECOVERIES.index, default=default.recovery or Recovery.PRECISE)


def _strictness(one: Reliability) -> tuple[int, int, int]:
    return _STRICTNESS.index(one.mode), one.secondaries, -one.checkpoint_every_ms

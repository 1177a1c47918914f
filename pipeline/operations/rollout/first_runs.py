"""Whether fragments that were started do their work, or fail at their first records. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.catalog.records import LaneState
from pipeline.ids import FragmentName
from pipeline.operations.status.observed import ObservedFragment

STEADY_AFTER_S = 10.0
"""A fragment that has run for so long counts as one that works, whatever it has read."""


@dataclass(frozen=True, slots=True)
class FirstRuns:
    """Fragments that were started, and how they were first seen running.

    Args:
        names: which.
        seen: since when each runs without a break, and how many records it had read then.
    """

    names: frozenset[FragmentName]
    seen: Mapping[FragmentName, tuple[float, int]] = field(default_factory=dict)

    def after(self, seen: Sequence[ObservedFragment], now_s: float) -> "FirstRuns":
        """With what is seen now; one that does not run begins again when it does."""
        running = {
            one.record.fragment: (now_s, one.status.records_in)
            for one in seen
            if one.status is not None and _runs(one) and one.record.fragment in self.names
        }
        return FirstRuns(self.names, {name: self.seen.get(name, running[name]) for name in running})

    def steady(self, seen: Sequence[ObservedFragment], now_s: float) -> bool:
        """Whether each has finished a batch since, has nothing to read, or has run long enough."""
        return all(
            self._is_steady(one, *self.seen[one.record.fragment], now_s)
            for one in seen
            if one.record.fragment in self.seen
        )

    @staticmethod
    def _is_steady(one: ObservedFragment, since_s: float, read: int, now_s: float) -> bool:
        finished = one.status is not None and one.status.records_in > read
        return finished or one.lag.records == 0 or now_s - since_s >= STEADY_AFTER_S


def _runs(one: ObservedFragment) -> bool:
    return one.state == LaneState.RUNNING.value

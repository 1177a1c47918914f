"""Fragments that a deploy starts, and whether their first runs succeed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.catalog.records import FragmentRecord, FragmentStatus, LaneState
from pipeline.ids import Epoch, FragmentName
from pipeline.operations.status.observed import ObservedFragment

STEADY_AFTER_S = 10.0
"""A fragment that has run for so long counts as steady, whatever it has read."""


@dataclass(frozen=True, slots=True)
class StartedFragments:
    """The fragments that a deploy starts.

    Args:
        names: which.
        until: the epoch up to which reports are of the plan before; left out: it had none.
    """

    names: frozenset[FragmentName]
    until: Mapping[FragmentName, Epoch]


def started_fragments(
    before: Sequence[FragmentRecord],
    after: Sequence[FragmentRecord],
    reports: Sequence[FragmentStatus],
) -> StartedFragments:
    """Compare what the catalog held before a deploy with what it holds now.

    Args:
        before: the fragments of the network before the deploy.
        after: those after it.
        reports: the last ones before it.
    """
    then = {record.fragment: record for record in before}
    now = {record.fragment: record for record in after}
    return StartedFragments(
        frozenset(name for name in now if now[name] != then.get(name)),
        {
            one.fragment: one.epoch
            for one in reports
            if then.get(one.fragment) != now.get(one.fragment)
        },
    )


@dataclass(frozen=True, slots=True)
class FirstRuns:
    """First runs of fragments that were started.

    Args:
        names: the fragments.
        seen: the monotonic time since which each runs without a break, and how many records it had
            read then.
    """

    names: frozenset[FragmentName]
    seen: Mapping[FragmentName, tuple[float, int]] = field(default_factory=dict)

    def after(self, seen: Sequence[ObservedFragment], now_s: float) -> "FirstRuns":
        """Updated by a look; a fragment that does not run begins again when it does."""
        running = {
            one.record.fragment: (now_s, one.status.records_in)
            for one in seen
            if one.status is not None and _runs(one) and one.record.fragment in self.names
        }
        return FirstRuns(self.names, {name: self.seen.get(name, running[name]) for name in running})

    def steady(self, seen: Sequence[ObservedFragment], now_s: float) -> bool:
        """Whether each has finished a batch, has nothing to read, or has run for STEADY_AFTER_S."""
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

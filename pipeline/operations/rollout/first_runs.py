"""Fragments that a deploy starts, and whether their first runs succeed. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.records import FragmentRecord
from pipeline.ids import Epoch, FragmentName
from pipeline.operations.status.observed import ObservedFragment

STEADY_AFTER_S = 30.0
"""A fragment that has run for this time is steady, whatever it has read: a first batch takes
seconds, and several times as long on a busy machine."""


@dataclass(frozen=True, slots=True)
class StartedFragments:
    """The fragments that a deploy starts.

    Args:
        names: the fragments.
        until: fragment → last epoch whose reports are of the previous plan; missing: it had none.
    """

    names: frozenset[FragmentName]
    until: Mapping[FragmentName, Epoch]


def started_fragments(
    before: Sequence[FragmentRecord],
    after: Sequence[FragmentRecord],
    reports: Sequence[FragmentStatus],
) -> StartedFragments:
    """Compare the fragments in the catalog before and after a deploy.

    Another placement starts nothing: a fragment that moves has its reports of before until then.

    Args:
        before: the fragments of the network before the deploy.
        after: those after it.
        reports: the last reports before it.
    """
    then = {record.fragment: record.without_placement for record in before}
    now = {record.fragment: record.without_placement for record in after}
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
        seen: fragment → monotonic start of its uninterrupted run, and its number of records then.
    """

    names: frozenset[FragmentName]
    seen: Mapping[FragmentName, tuple[float, int]] = field(default_factory=dict)

    def after(self, seen: Sequence[ObservedFragment], now_s: float) -> "FirstRuns":
        """Update by a poll; removes fragments that do not run."""
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

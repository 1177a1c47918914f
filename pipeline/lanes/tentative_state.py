"""What there is to say of the tentative results of a lane, and when it is said again. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from pipeline.boundaries.deadline import Held
from pipeline.ids import SteadyMillis
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.markers.positions import InputPartition

REPORT_MS: Final = 2_000
"""Least interval between two reports without a change of phase."""


@dataclass(frozen=True, slots=True)
class TentativeCounts:
    """What became of tentative results, since the lane has started.

    A result that a later fork replaces before it is settled is neither of the last three.

    Args:
        published: that were sent.
        confirmed: with an equal stable one.
        replaced: with a different stable one.
        undone: without a stable one.
        open_results: sent, and not settled yet.
    """

    published: int = 0
    confirmed: int = 0
    replaced: int = 0
    undone: int = 0
    open_results: int = 0

    def since(self, before: "TentativeCounts") -> "TentativeCounts":
        """What was added; those that are open are open still."""
        return replace(
            self,
            published=self.published - before.published,
            confirmed=self.confirmed - before.confirmed,
            replaced=self.replaced - before.replaced,
            undone=self.undone - before.undone,
        )


NONE_YET: Final = TentativeCounts()


@dataclass(frozen=True, slots=True)
class TentativeState:
    """What there is to say of the tentative results of a lane.

    Args:
        phase: of its fork.
        since_ms: since when it is in that phase (steady time).
        held: what the lane holds back; None: nothing.
        generation: of the fork that runs, as text; None: none does.
        counts: what became of its results.
        is_settled: whether nothing is left to settle.
        problem: why the last fork has failed; empty: it has not.
        unsettled: why results could not be settled last; empty: they could, or there were none.
    """

    phase: ForkPhase
    since_ms: SteadyMillis
    held: Held | None = None
    generation: str | None = None
    counts: TentativeCounts = NONE_YET
    is_settled: bool = True
    problem: str = ""
    unsettled: str = ""

    @property
    def missing(self) -> tuple[InputPartition, ...]:
        """The input partitions that results wait for, sorted."""
        return () if self.held is None else tuple(sorted(self.held.causes))


def missing_text(missing: InputPartition) -> str:
    """A partition in short form, as `topic/partition`."""
    return f"{missing.topic}/{missing.partition}"


def is_due(
    now: TentativeState, said: TentativeState | None, said_ms: SteadyMillis, now_ms: SteadyMillis
) -> bool:
    """Whether a state is reported.

    Args:
        now: the present one.
        said: the last one that was reported; None: none was.
        said_ms: when it was (steady time).
        now_ms: steady time.
    """
    if said is None or now.phase is not said.phase:
        return True
    return now != said and now_ms - said_ms >= REPORT_MS

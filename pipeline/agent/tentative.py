"""Tentative results of a running lane, from the first until all of them are settled. Pure."""

from dataclasses import dataclass, replace

from pipeline.ids import SteadyMillis
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.lanes.tentative_state import NONE_YET, TentativeCounts, TentativeState


@dataclass(frozen=True, slots=True)
class TentativeRun:
    """What a lane has reported of its tentative results; times are steady.

    Args:
        state: as last reported.
        settled: the counts when all were settled last.
        began_ms: since when results are published that are not settled; None: there are none, or an
            earlier run has published them.
        ended_ms: when it has ceased to publish; None: it has not.
    """

    state: TentativeState
    settled: TentativeCounts = NONE_YET
    began_ms: SteadyMillis | None = None
    ended_ms: SteadyMillis | None = None

    @property
    def became(self) -> TentativeCounts:
        """What became of the results since all were settled last."""
        return self.state.counts.since(self.settled)

    @property
    def is_over(self) -> bool:
        """Whether all that was published is settled, and no fork publishes."""
        ceased = self.state.phase is not ForkPhase.PUBLISHING
        return ceased and self.state.is_settled and self.state.counts != self.settled

    def ended(self) -> "TentativeRun":
        """The same after all was settled."""
        return TentativeRun(self.state, self.state.counts)


def with_state(before: TentativeRun | None, state: TentativeState) -> TentativeRun:
    """What is known after a report.

    Args:
        before: what was known; None: it is the first report of this run.
        state: that is reported.
    """
    found = TentativeRun(state) if before is None else replace(before, state=state)
    if state.phase is ForkPhase.PUBLISHING:
        began_ms = state.since_ms if found.began_ms is None else found.began_ms
        return replace(found, began_ms=began_ms, ended_ms=None)
    if found.began_ms is not None and found.ended_ms is None:
        return replace(found, ended_ms=state.since_ms)
    return found

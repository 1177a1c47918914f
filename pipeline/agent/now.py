"""The present as an agent is told it. Pure."""

from dataclasses import dataclass

from pipeline.ids import Millis, SteadyMillis


@dataclass(frozen=True, slots=True)
class Now:
    """One look at both clocks.

    Args:
        wall_ms: what is told to people and kept beyond this process. It may be wrong, and be set.
        steady_ms: what decides: how long something lasted, and when something is due.
    """

    wall_ms: Millis
    steady_ms: SteadyMillis

    def wall_at(self, at_ms: SteadyMillis) -> Millis:
        """What the wall clock would have shown at a moment, had it been what it is now."""
        return Millis(self.wall_ms - (self.steady_ms - at_ms))

    def steady_at(self, at_ms: Millis) -> SteadyMillis:
        """When the wall clock showed a time, if it was right then; never later than now."""
        return SteadyMillis(self.steady_ms - max(0, self.wall_ms - at_ms))

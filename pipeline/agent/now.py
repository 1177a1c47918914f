"""The present: wall time and steady time of one decision. Pure."""

from dataclasses import dataclass

from pipeline.ids import Millis, SteadyMillis


@dataclass(frozen=True, slots=True)
class Now:
    """Both clocks, read at one moment.

    Args:
        wall_ms: for display and for records; it may be wrong or be set.
        steady_ms: for every decision: durations and due times.
    """

    wall_ms: Millis
    steady_ms: SteadyMillis

    def wall_at(self, at_ms: SteadyMillis) -> Millis:
        """The wall time of a past moment, computed from the present wall time."""
        return Millis(self.wall_ms - (self.steady_ms - at_ms))

    def steady_at(self, at_ms: Millis) -> SteadyMillis:
        """The steady time of a past wall time, if the clock was right then; at most now."""
        return SteadyMillis(self.steady_ms - max(0, self.wall_ms - at_ms))

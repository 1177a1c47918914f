"""Pulse of an agent: when it last decided. Pure."""

from pipeline.clock import Clock, steady_ms


class Pulse:
    """Time of the agent's last decision.

    One thread sets it, another one reads it: an assignment needs no lock.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._decided_ms = steady_ms(clock)

    def beat(self) -> None:
        """The agent has decided now."""
        self._decided_ms = steady_ms(self._clock)

    def age_ms(self) -> int:
        """Time since the last decision; before the first one, since this was made."""
        return steady_ms(self._clock) - self._decided_ms

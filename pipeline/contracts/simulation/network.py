"""Network of a simulation: messages that are late, lost or doubled."""

from dataclasses import dataclass

from pipeline.contracts.simulation.chance import Chance


@dataclass(frozen=True, slots=True)
class Network:
    """What happens to messages.

    Args:
        least_ms: shortest latency.
        most_ms: longest latency; messages overtake each other by the difference.
        lost: part of the messages that never arrive.
        doubled: part that arrives twice, each time with a latency of its own.
    """

    least_ms: int = 5
    most_ms: int = 50
    lost: float = 0.0
    doubled: float = 0.0

    def latencies(self, chance: Chance) -> tuple[int, ...]:
        """The latency of each copy of a message; empty: it is lost."""
        if self.lost and chance.random() < self.lost:
            return ()
        span = self.most_ms - self.least_ms + 1
        first = self.least_ms + int(chance.random() * span)
        if self.doubled and chance.random() < self.doubled:
            return first, self.least_ms + int(chance.random() * span)
        return (first,)

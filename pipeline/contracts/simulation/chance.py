"""Interface of random numbers, so that a run repeats by its seed."""

from typing import Protocol


class Chance(Protocol):
    """Random numbers, as `random.Random` makes them."""

    def random(self) -> float:
        """Uniform in [0, 1)."""
        ...

    def randrange(self, stop: int, /) -> int:
        """Uniform in 0 … stop - 1."""
        ...

    def expovariate(self, rate: float, /) -> float:
        """Exponential, with the mean 1 / rate."""
        ...

    def gauss(self, mean: float, deviation: float, /) -> float:
        """Normal."""
        ...

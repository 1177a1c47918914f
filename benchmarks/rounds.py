"""Statistics over the rounds of a benchmark: the median with its 90 % confidence interval.

The interval is between two order statistics, so it assumes no distribution. With fewer than five
rounds no such interval exists, and the range of all rounds is used.
"""

import math
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pipeline.errors import MedusaError

CONFIDENCE = 0.9
Round = TypeVar("Round")


@dataclass(frozen=True, slots=True)
class Spread:
    """A median and the interval around it."""

    median: float
    low: float
    high: float

    def text(self, digits: int = 0) -> str:
        """The median with the interval in brackets.

        >>> Spread(1.0, 0.95, 1.1).text(2)
        '1.00 [0.95, 1.10]'
        """
        middle, low, high = (f"{x:,.{digits}f}" for x in (self.median, self.low, self.high))
        return f"{middle} [{low}, {high}]"


def spread(values: Sequence[float]) -> Spread:
    """The median of some values and its 90 % confidence interval.

    >>> spread([3.0, 1.0, 2.0])
    Spread(median=2.0, low=1.0, high=3.0)
    """
    ordered = sorted(values)
    cut = _cut(len(ordered))
    return Spread(statistics.median(ordered), ordered[cut], ordered[-1 - cut])


def ratios(rounds: Sequence[Mapping[str, float]], of: str, to: str) -> Spread:
    """The spread of one side's figure divided by another's, in each round."""
    return spread([figures[of] / figures[to] for figures in rounds])


def completed(repeat: int, measure: Callable[[int], Round]) -> list[Round]:
    """The rounds in which no side failed; each failure is printed.

    Raises:
        SystemExit: there are none.
    """
    found: list[Round] = []
    for turn in range(repeat):
        try:
            found.append(measure(turn))
        except (SystemExit, MedusaError, subprocess.TimeoutExpired) as failure:
            # An hour's other rounds are still worth something.
            print(f"round {turn + 1} is left out: {failure}", flush=True)
    if not found:
        raise SystemExit("no round was completed")
    return found


def _cut(count: int) -> int:
    """How many of the least, and how many of the greatest values are outside of the interval.

    With `cut` of them outside, the interval misses the median if at most `cut` of the values are on
    one side of it, as heads in so many throws of a coin.
    """
    cut, missed = 0, 2 / 2**count
    while (missed := missed + 2 * math.comb(count, cut + 1) / 2**count) <= 1 - CONFIDENCE:
        cut += 1
    return cut

import doctest
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import rounds
from benchmarks.rounds import Spread, completed, ratios, spread

FIGURES = st.lists(st.floats(1, 1e6), min_size=1, max_size=30)


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(rounds).failed == 0


@pytest.mark.parametrize(
    ("count", "low"), [(1, 0), (4, 0), (5, 0), (7, 0), (8, 1), (11, 2), (20, 5)]
)
def test_the_interval_is_between_two_order_statistics(count: int, low: int) -> None:
    """The ranks are those in tables of the sign test: second and seventh of eight."""
    values = [float(n) for n in range(count)]
    assert spread(values).low == low
    assert spread(values).high == count - 1 - low


@given(FIGURES)
def test_the_interval_contains_the_median_and_has_at_least_the_confidence(
    values: list[float],
) -> None:
    """By the binomial distribution, from five rounds on."""
    found = spread(values)
    assert found.low <= found.median <= found.high
    cut, count = sorted(values).index(found.low), len(values)
    missed = 2 * sum(math.comb(count, k) for k in range(cut + 1)) / 2**count
    assert cut == 0 or missed <= 1 - rounds.CONFIDENCE


def test_a_ratio_is_that_of_each_round() -> None:
    """A slow round slows both sides: the ratio of medians would be another."""
    found = ratios([{"a": 1, "b": 2}, {"a": 30, "b": 10}, {"a": 4, "b": 4}], "a", "b")
    assert found == Spread(1.0, 0.5, 3.0)


def failing(*turns: int) -> Callable[[int], int]:
    """A round that returns its turn, but for some that fail."""

    def measure(turn: int) -> int:
        if turn in turns:
            raise SystemExit("a side was wrong")
        return turn

    return measure


def test_a_failed_round_is_left_out_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """The others count."""
    assert completed(3, failing(1)) == [0, 2]
    assert capsys.readouterr().out == "round 2 is left out: a side was wrong\n"


def test_without_a_completed_round_there_is_no_result() -> None:
    """An empty summary would look like one."""
    with pytest.raises(SystemExit, match="no round was completed"):
        completed(2, failing(0, 1))

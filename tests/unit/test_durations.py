"""Durations in the notation of users."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import durations


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0s", 0),
        ("250ms", 250),
        ("5s", 5_000),
        ("1m", 60_000),
        ("2h", 7_200_000),
        (" 7 d ", 604_800_000),
    ],
)
def test_parse_reads_a_number_and_a_unit(text: str, ms: int) -> None:
    """Each unit has its milliseconds; spaces are ignored."""
    assert durations.parse(text) == ms


@pytest.mark.parametrize(
    "text", ["", "5", "m", "1.5s", "-1s", "1 minute", "1w", "1m30s", "\u0665s"]
)
def test_parse_refuses_everything_else(text: str) -> None:
    """An invalid duration is refused with a message, not guessed."""
    with pytest.raises(ValueError, match="is not a duration"):
        durations.parse(text)


def test_parse_refuses_more_than_a_hundred_years() -> None:
    """A typing error does not keep state for ever."""
    with pytest.raises(ValueError, match="longer than"):
        durations.parse("99999999d")


@given(st.integers(min_value=0, max_value=durations.MAX_MS))
def test_format_is_read_back(ms: int) -> None:
    """Parsing a formatted duration returns the same number."""
    assert durations.parse(durations.format(ms)) == ms


def test_the_examples_of_durations() -> None:
    """Those in the docstrings are correct."""
    assert doctest.testmod(durations).failed == 0

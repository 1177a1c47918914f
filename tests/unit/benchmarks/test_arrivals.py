"""Pauses and latencies of results."""

import doctest

import pytest
from confluent_kafka import Consumer
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import arrivals
from benchmarks.arrivals import Arrival, Arrivals, gaps


def arrived(*seen: tuple[float, float, int]) -> Arrivals:
    """Results that have arrived; the consumer is not used."""
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "none", "log_level": 0})
    return Arrivals(consumer, [Arrival(*one) for one in seen])


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(arrivals).failed == 0


@given(st.lists(st.floats(0, 1e6), min_size=2))
def test_gaps_are_at_most_the_whole_time(times_s: list[float]) -> None:
    """And each is longer than one delivery."""
    found = gaps(sorted(times_s))
    assert sum(found) <= max(times_s) - min(times_s) + 1e-3
    assert all(gap > arrivals.TOGETHER_S for gap in found)


def test_a_pause_is_less_the_usual_time() -> None:
    """A delivery each second, then none for three and a half."""
    seen = arrived(*((float(at), 10.0, 0) for at in range(11)), (13.5, 900.0, 0), (14.5, 10.0, 0))
    assert seen.pause_s(0, 10.2, 15.0) == (2.5, 1.0)
    assert seen.last_s == 14.5


def test_a_pause_lasts_until_the_end_without_a_result() -> None:
    """Nothing has come back."""
    seen = arrived(*((float(at), 10.0, 0) for at in range(11)))
    assert seen.pause_s(0, 10.2, 40.0) == (29.0, 1.0)


def test_latencies_are_those_between_two_times() -> None:
    """Both included."""
    seen = arrived((1.0, 5.0, 0), (2.0, 6.0, 1), (2.0, 7.0, 0), (3.0, 8.0, 0))
    assert seen.late_ms(2.0, 3.0) == [6.0, 7.0, 8.0]
    assert seen.late_ms(3.5, 9.0) == []


def test_the_pause_of_a_partition_is_not_hidden_by_the_others() -> None:
    """One of two goes on; a third has never had a result."""
    going = [(float(at), 1.0, 0) for at in range(30)]
    stopped = [(at + 0.5, 1.0, 1) for at in range(30) if not 10 <= at < 20]
    seen = arrived(*sorted(going + stopped))
    assert seen.partition_pause_s(0, 10.2, 29.5) == 10.0
    assert seen.pause_s(0, 10.2, 29.5) == (0.5, 0.5)


def test_without_a_result_before_there_is_no_pause_of_a_partition() -> None:
    """The benchmark ends."""
    with pytest.raises(SystemExit, match="no result"):
        arrived().partition_pause_s(0, 10, 20)

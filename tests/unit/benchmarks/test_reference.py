from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.reference import (
    Group,
    Total,
    averages,
    chain,
    compare,
    conversion,
    conversions,
    converted,
    window_of,
)

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BEGIN_MS = int(BEGIN.timestamp() * 1_000)


def reading(at_ms: int, celsius: float, site: str = "a", sensor: str = "s") -> dict[str, Any]:
    """A decoded reading, so many milliseconds after the beginning."""
    at = BEGIN + timedelta(milliseconds=at_ms)
    return {"sensor": sensor, "site": site, "celsius": celsius, "humidity": 0.5, "at": at}


READINGS = st.lists(
    st.builds(
        reading,
        st.integers(0, 5_000),
        st.floats(-20, 40),
        st.sampled_from("abc"),
        st.sampled_from("st"),
    ),
    min_size=1,
    max_size=40,
)


def rows(windows: Mapping[Group, Total]) -> list[tuple[Group, Total]]:
    """Windows as the results of a side."""
    return list(windows.items())


def test_the_stateless_job_filters_and_converts() -> None:
    """A result has the time of its reading; what is not warmer than -90 degrees is dropped."""
    row = reading(7, 10.0)
    assert conversion(row) == ("s", "a", 50.0, 0.5, BEGIN_MS + 7)
    assert conversion(reading(7, -90.0)) is None
    assert converted({**row, "fahrenheit": 50.0}) == conversion(row)


def test_equal_readings_count_each() -> None:
    """Preloaded readings are repeated from a pool."""
    known = {b"one": reading(0, 10.0), b"two": reading(0, -91.0)}
    found = conversions({b"one": 3, b"two": 4}, known.__getitem__)
    assert found == Counter({("s", "a", 50.0, 0.5, BEGIN_MS): 3})


def test_windows_contain_their_start_and_not_their_end() -> None:
    """A second for each site."""
    found = averages(
        [reading(0, 1.0), reading(999, 2.0), reading(1_000, 5.0), reading(5, 7.0, "b")]
    )
    assert found == {
        Group("a", None, BEGIN_MS + 1_000): Total(1.5, 2),
        Group("a", None, BEGIN_MS + 2_000): Total(5.0, 1),
        Group("b", None, BEGIN_MS + 1_000): Total(7.0, 1),
    }


@pytest.mark.parametrize(("shift_ms", "ends"), [(0, (1, 2, 3)), (-1, (1, 1, 1))])
def test_a_chain_groups_by_less_each_time(shift_ms: int, ends: tuple[int, int, int]) -> None:
    """A result at its window's end belongs to the next second, one just before it to the same."""
    found = chain([reading(0, 1.0), reading(1, 9.0, "b", "t")], shift_ms)
    first, second, third = (BEGIN_MS + end * 1_000 for end in ends)
    assert found[0] == {
        Group("a", "s", first): Total(1.0, 1),
        Group("b", "t", first): Total(9.0, 1),
    }
    assert found[1] == {
        Group("a", None, second): Total(1.0, 1),
        Group("b", None, second): Total(9.0, 1),
    }
    assert found[2] == {Group(None, None, third): Total(9.0, 2)}


@given(READINGS, st.sampled_from((0, -1)))
def test_a_chain_loses_no_reading(readings: Sequence[dict[str, Any]], shift_ms: int) -> None:
    """Each of its windows counts all of them, and has the same maximum."""
    for windows in chain(readings, shift_ms):
        assert sum(total.readings for total in windows.values()) == len(readings)
        assert max(t.celsius for t in windows.values()) == max(r["celsius"] for r in readings)


def test_a_result_is_read_with_the_columns_that_it_has() -> None:
    """An average has no sensor."""
    row = {"site": "a", "window_end": BEGIN, "celsius": 1.0, "readings": 2}
    assert window_of(row) == (Group("a", None, BEGIN_MS), Total(1.0, 2))


@given(READINGS, st.randoms())
def test_results_in_any_order_are_equal(readings: list[dict[str, Any]], random: Any) -> None:
    """Also if their averages were rounded in another way."""
    expected = averages(readings)
    found = [(g, Total(t.celsius + 1e-12, t.readings)) for g, t in rows(expected)]
    random.shuffle(found)
    compared = compare(expected, found, 0, BEGIN_MS + 10_000)
    assert compared.exact
    assert len(compared.equal) == len(expected)


def test_differences_are_counted() -> None:
    """A lost window, another value, another number, a second result, a window that is none."""
    ends = [Group("a", None, BEGIN_MS + n) for n in range(6)]
    expected = {end: Total(1.0, 2) for end in ends[:5]}
    found = [
        (ends[1], Total(1.5, 2)),
        (ends[2], Total(1.0, 1)),
        (ends[3], Total(1.0, 2)),
        (ends[3], Total(1.0, 2)),
        (ends[5], Total(1.0, 2)),
    ]
    compared = compare(expected, found, 0, BEGIN_MS + 10)
    assert (compared.equal, compared.lost, compared.wrong) == ((2,), 2, 4)
    assert not compared.exact


def test_windows_that_end_outside_of_two_times_are_not_compared() -> None:
    """Neither expected nor found ones; at these times they are."""
    groups = {at: Group("a", None, at) for at in (5, 10, 15, 20, 30)}
    expected = {groups[at]: Total(1.0, 1) for at in (5, 10, 15, 20)}
    found = [(groups[at], Total(1.0, 1)) for at in (10, 15, 30)]
    compared = compare(expected, found, 10, 15)
    assert compared.exact
    assert compared.equal == (0, 1)

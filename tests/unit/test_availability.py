"""Bounds of availability, and which of them is the tightest."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.availability import Availability, Policy, tightest

availabilities = st.builds(Availability, st.integers(1, 4), st.sampled_from(Policy))


@given(st.lists(availabilities, min_size=1), availabilities)
def test_the_tightest_has_the_least_bound(those: list[Availability], default: Availability) -> None:
    """The default only counts if there is no other."""
    found = tightest(those, default)
    assert found in those
    assert found is not None
    assert found.bound_ms == min(one.bound_ms for one in those)
    assert tightest((), default) == default
    assert tightest((), None) is None


@given(st.lists(availabilities, min_size=1), st.lists(availabilities, min_size=1))
def test_the_tightest_of_parts_is_that_of_the_whole(
    those: list[Availability], others: list[Availability]
) -> None:
    """In any order."""
    parts = [one for one in (tightest(those, None), tightest(others, None)) if one is not None]
    whole = tightest((*those, *others), None)
    assert tightest(parts, None) == whole
    assert tightest((*others, *those), None) == whole


def test_of_equal_bounds_the_more_available_policy_counts() -> None:
    """Processing is more available than delaying, and that more than nothing."""
    process, delay, suspend = (Availability(3_000, policy) for policy in Policy)
    assert tightest((suspend, delay, process), None) == process
    assert tightest((suspend, delay), None) == delay


def test_it_is_written_with_its_policy() -> None:
    """As plans print it."""
    assert str(Availability(3_000)) == "3s, process"
    assert str(Availability(1_500, Policy.DELAY)) == "1500ms, delay"

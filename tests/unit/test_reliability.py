"""Reliabilities, and which of them is the strictest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reliability import (
    SECONDARIES_MAX,
    UPSTREAM_BACKUP,
    Mode,
    Reliability,
    strictest,
    with_active_standbys,
    with_passive_standbys,
)

numbers = st.integers(0, SECONDARIES_MAX)
reliabilities = st.one_of(
    st.builds(with_active_standbys, numbers),
    st.builds(with_passive_standbys, numbers, st.integers(1_000, 3_000)),
)


@given(st.lists(reliabilities, min_size=1), reliabilities)
def test_the_strictest_is_the_one_with_the_most_followers(
    those: list[Reliability], default: Reliability
) -> None:
    """Of active standby; the default only counts if there is no other."""
    found = strictest(those, default)
    assert found in those
    assert found.active_standbys == max(one.active_standbys for one in those)
    assert strictest((), default) == default


@given(st.lists(reliabilities, min_size=1), st.lists(reliabilities, min_size=1))
def test_the_strictest_of_parts_is_that_of_the_whole(
    those: list[Reliability], others: list[Reliability]
) -> None:
    """In any order."""
    parts = (strictest(those, UPSTREAM_BACKUP), strictest(others, UPSTREAM_BACKUP))
    assert strictest(parts, UPSTREAM_BACKUP) == strictest([*others, *those], UPSTREAM_BACKUP)


def test_the_strictest_copy_is_the_most_frequent_one() -> None:
    """Of as many secondaries; a follower is stricter than any copy."""
    often, seldom = with_passive_standbys(1, 1_000), with_passive_standbys(1, 2_000)
    assert strictest((seldom, often), UPSTREAM_BACKUP) == often
    two = with_passive_standbys(2, 2_000)
    assert strictest((often, two), UPSTREAM_BACKUP) == two
    assert strictest((two, with_active_standbys(1)), UPSTREAM_BACKUP) == with_active_standbys(1)


def test_the_mode_counts_before_the_number() -> None:
    """The strictest mode is the last one."""
    followed = with_active_standbys(1)
    assert strictest((Reliability(Mode.UPSTREAM_BACKUP, 5), followed), UPSTREAM_BACKUP) == followed


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "upstream_backup"),
        (1, "active_standby, 1 secondary"),
        (5, "active_standby, 5 secondaries"),
    ],
)
def test_a_number_of_followers_is_a_reliability(number: int, text: str) -> None:
    """As the catalog stores it."""
    found = with_active_standbys(number)
    assert found.active_standbys == number
    assert str(found) == text

"""What is measured of the waits of a lane for the last partition of its input."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.deadline import Held, Wanted, Watch
from pipeline.boundaries.usual_waits import (
    MINUTE_MS,
    MINUTES_LEAST,
    MINUTES_MOST,
    WATCHED_MS,
    UsualWaits,
    Waits,
    usual_waits,
    with_look,
)
from pipeline.ids import Millis, SteadyMillis
from tests.unit.boundaries.support import at
from tests.unit.boundaries.test_deadline import SOON

BEGAN = SteadyMillis(1_000_000)
LEVEL = Watch(WATCHED_MS, level_ms=BEGAN, wanted=Wanted(Millis(5), {}))
BEHIND = replace(LEVEL, level_ms=None)


def waiting(since_ms: int) -> Held:
    """Results that are held back since so long after the beginning."""
    since = SteadyMillis(BEGAN + since_ms)
    return Held(since, 0, 0, Millis(5), frozenset({at(SOON, 1)}))


def measured(*looks: tuple[int, int | None], level: Watch = LEVEL) -> Waits:
    """The waits after looks at these times, each with since when something is held back."""
    waits = Waits(BEGAN)
    for ms, since_ms in looks:
        found = None if since_ms is None else waiting(since_ms)
        waits = with_look(waits, level, found, SteadyMillis(BEGAN + ms))
    return waits


def minutes(*longest_ms: int) -> Waits:
    """Waits of so many minutes."""
    return Waits(BEGAN, minutes=longest_ms)


def test_a_wait_ends_when_what_brought_the_last_partition_was_planned() -> None:
    """It is not over before, so it counts then, with all of it."""
    assert measured((0, 0), (300, 0), (700, 0)).longest_ms is None
    assert measured((0, 0), (300, 0), (900, None)).longest_ms == 900


def test_a_younger_wait_ends_the_one_before() -> None:
    """A partition that is always a little behind: what it has passed is held back no more."""
    waits = measured((0, 0), (800, 700), (1_700, 1_600), (1_800, None))
    assert waits.longest_ms == 1_000
    assert measured((0, 0), (800, 700)).longest_ms == 800


def test_without_a_wait_there_is_none() -> None:
    """That is measured, too: the partitions are level."""
    assert measured((0, None), (100, None)).longest_ms == 0


def test_what_waits_while_the_lane_is_behind_is_not_measured() -> None:
    """It reads each partition at its own pace, so nothing is usual in it."""
    waits = measured((0, 0))
    waits = with_look(waits, BEHIND, waiting(0), SteadyMillis(BEGAN + 40_000))
    assert (waits.since_ms, waits.longest_ms) == (None, None)
    waits = with_look(waits, BEHIND, None, SteadyMillis(BEGAN + 41_000))
    assert waits.longest_ms is None


def test_a_wait_counts_from_when_the_lane_is_level() -> None:
    """As for the deadline of a fork."""
    later = replace(LEVEL, level_ms=SteadyMillis(BEGAN + 500))
    assert measured((600, 0), (900, None), level=later).longest_ms == 400


def test_nothing_is_said_before_some_minutes_were_measured() -> None:
    """A single one says little."""
    assert usual_waits(minutes(*(10,) * (MINUTES_LEAST - 1))) is None
    assert usual_waits(minutes(*(10,) * MINUTES_LEAST)) == UsualWaits(MINUTES_LEAST, 10, 10)


def test_a_failure_is_one_minute_however_long_it_lasts() -> None:
    """So it is not usual among others; minutes in which nothing was let out are not counted."""
    waits = Waits(BEGAN)
    for second in range(3_600):
        ms = SteadyMillis(BEGAN + 1_000 * second)
        found = waiting(600_000) if 600 <= second < 1_800 else None
        waits = with_look(waits, LEVEL, found, ms)
    found_now = usual_waits(waits)
    assert found_now is not None
    assert (found_now.usual_ms, found_now.longest_ms) == (0, 1_200_000)
    assert 38 <= found_now.minutes <= 41


@pytest.mark.parametrize(("long", "usual_ms"), [(5, 100), (6, 9_000)])
def test_what_comes_in_more_than_one_of_twenty_minutes_is_usual(long: int, usual_ms: int) -> None:
    """And what is rarer is not."""
    found = usual_waits(minutes(*(9_000,) * long, *(100,) * (100 - long)))
    assert found == UsualWaits(100, usual_ms, 9_000)


@given(st.lists(st.tuples(st.integers(1, 40_000), st.booleans()), max_size=300))
def test_no_wait_is_longer_than_what_was_measured(steps: list[tuple[int, bool]]) -> None:
    """Whatever comes: every wait that has ended is in it, and memory has a bound."""
    waits, ms, since = Waits(BEGAN), 0, None
    longest = 0
    for pause, waits_now in steps:
        ms += pause
        if not waits_now and since is not None:
            longest = max(longest, ms - since)
        since = (ms if since is None else since) if waits_now else None
        found = None if since is None else waiting(since)
        waits = with_look(waits, LEVEL, found, SteadyMillis(BEGAN + ms))
    assert max((*waits.minutes, waits.longest_ms or 0)) == longest


def test_a_day_is_kept() -> None:
    """Then the oldest minutes are forgotten."""
    waits = minutes(*(7,) * MINUTES_MOST)
    for minute in (1, 2):
        waits = with_look(waits, LEVEL, None, SteadyMillis(BEGAN + minute * MINUTE_MS))
    assert len(waits.minutes) == MINUTES_MOST
    assert waits.minutes[-2:] == (7, 0)

"""When a fork begins, publishes and ends."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.availability import Availability, Policy
from pipeline.boundaries.deadline import Held, Since, Wanted, Watch
from pipeline.boundaries.lane_time import Steered
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis, SteadyMillis, StreamName, TopicName
from pipeline.lanes.fork_phases import (
    RETRY_MOST_MS,
    RETRY_MS,
    TRANSITIONS,
    ForkEvent,
    ForkPhase,
    Measured,
    after,
    begun,
    next_event,
    reads_early,
    rest_ms,
    steered,
    waits_ms,
)
from pipeline.markers.positions import InputPartition

DOCUMENT = Path(__file__).parents[3] / "docs" / "lane-states.md"
X = Availability(10_000)
HOW = Measured(latency_ms=500, ready_ms=3_000)
LEVEL = Watch(X.bound_ms, level_ms=SteadyMillis(0))
BEHIND = Watch(X.bound_ms)
NOW = SteadyMillis(1_000_000)
AWAY = InputPartition(StreamName("cars"), TopicName("cars"), 1)
THERE = InputPartition(StreamName("cars"), TopicName("cars"), 0)


def since(ms: int, counts_ms: int | None = -1) -> Held:
    """Results that are held back for so long; by default all of it counts."""
    counts = ms if counts_ms == -1 else counts_ms
    return Held(SteadyMillis(NOW - ms), ms, counts, Millis(5), frozenset({AWAY}))


def event(phase: ForkPhase, found: Held | None, watch: Watch = LEVEL) -> ForkEvent | None:
    """What happens now."""
    return next_event(phase, watch, found, X, HOW)


def test_a_fork_begins_so_that_it_is_ready_at_the_deadline() -> None:
    """The deadline is 0.9 X after its results are wanted, less the duration of a batch."""
    assert waits_ms(X, HOW) == 8_500
    assert event(ForkPhase.ABSENT, since(5_499)) is None
    assert event(ForkPhase.ABSENT, since(5_500)) is ForkEvent.DUE


@pytest.mark.parametrize("phase", ForkPhase)
def test_before_the_deadline_only_what_event_time_releases_is_computed_ahead(
    phase: ForkPhase,
) -> None:
    """Results of another fork would be made when nobody publishes them."""
    assert reads_early(phase, by_time=False) is (phase is ForkPhase.PUBLISHING)
    is_running = phase in (ForkPhase.PREPARING, ForkPhase.READY, ForkPhase.PUBLISHING)
    assert reads_early(phase, by_time=True) is is_running


def test_no_fork_begins_before_half_of_the_bound() -> None:
    """However long it takes until one is ready: else each skew would begin one."""
    slow = replace(HOW, ready_ms=60_000)
    assert next_event(ForkPhase.ABSENT, LEVEL, since(4_999), X, slow) is None
    assert next_event(ForkPhase.ABSENT, LEVEL, since(5_000), X, slow) is ForkEvent.DUE


def test_no_fork_begins_while_the_lane_is_behind() -> None:
    """X says nothing about the past."""
    assert event(ForkPhase.ABSENT, since(60_000, None), BEHIND) is None
    assert event(ForkPhase.ABSENT, since(60_000, 1_000)) is None


def test_a_fork_publishes_at_the_deadline() -> None:
    """Not before, and only once it is ready."""
    assert event(ForkPhase.READY, since(8_499)) is None
    assert event(ForkPhase.READY, since(8_500)) is ForkEvent.EXPIRED
    assert event(ForkPhase.PREPARING, since(9_000)) is None


@pytest.mark.parametrize("phase", [ForkPhase.PREPARING, ForkPhase.READY])
def test_a_fork_is_cancelled_if_the_cause_ends_before_the_deadline(phase: ForkPhase) -> None:
    """So a failure that is shorter than 0.9 X has no tentative result."""
    assert event(phase, None) is ForkEvent.OVER
    assert event(phase, since(2_400)) is ForkEvent.OVER
    assert event(phase, since(5_600)) is None
    assert event(phase, since(60_000, None), BEHIND) is ForkEvent.OVER


def test_a_fork_publishes_on_while_its_stable_lane_catches_up() -> None:
    """New results come from it until the lane is level, and nothing is held back."""
    assert event(ForkPhase.PUBLISHING, None, BEHIND) is None
    assert event(ForkPhase.PUBLISHING, since(60_000, None), BEHIND) is None
    assert event(ForkPhase.PUBLISHING, None) is ForkEvent.OVER
    assert event(ForkPhase.PUBLISHING, since(4_999)) is ForkEvent.OVER
    assert event(ForkPhase.PUBLISHING, since(5_000)) is None
    # Another cause goes on, although the lane has become level just now.
    assert event(ForkPhase.PUBLISHING, since(60_000, 10)) is None


@given(
    st.sampled_from(list(ForkPhase)),
    st.one_of(st.none(), st.tuples(st.integers(0, 30_000), st.one_of(st.none(), st.integers(0)))),
    st.booleans(),
    st.integers(0, 20_000),
    st.integers(0, 20_000),
)
def test_each_event_is_legal(
    phase: ForkPhase,
    found: tuple[int, int | None] | None,
    level: bool,  # noqa: FBT001 - drawn
    latency_ms: int,
    ready_ms: int,
) -> None:
    """And what has begun a fork does not end it at once."""
    held = None if found is None else since(*found)
    watch, how = (LEVEL if level else BEHIND), Measured(latency_ms, ready_ms)
    happened = next_event(phase, watch, held, X, how)
    if happened is None:
        return
    then = after(phase, happened, "here")
    if happened is ForkEvent.DUE:
        assert next_event(then, watch, held, X, how) is None


def test_an_illegal_event_changes_nothing() -> None:
    """It is a broken invariant."""
    for phase in ForkPhase:
        for one in ForkEvent:
            if (phase, one) not in TRANSITIONS:
                with pytest.raises(BrokenInvariantError, match=f"{phase.value} cannot have"):
                    after(phase, one, "here")


# --- how its event time moves ---------------------------------------------------------------------


def watched(alone: dict[InputPartition, Millis | None], *moments: tuple[int, int]) -> Watch:
    """A watch with event times that are wanted for so long."""
    found = tuple(Since(Millis(ms), SteadyMillis(NOW - ago)) for ms, ago in moments)
    wanted = Wanted(moments_last(moments), alone)
    return replace(LEVEL, moments=found, wanted=wanted, as_of_ms=NOW)


def moments_last(moments: tuple[tuple[int, int], ...]) -> Millis:
    """The event time that is wanted now."""
    return Millis(moments[-1][0])


LATE = watched({THERE: Millis(90), AWAY: Millis(4)}, (5, 9_000), (60, 8_000), (100, 10))
SLOW = Availability(X.bound_ms, Policy.DELAY)


def test_only_what_has_not_passed_the_due_event_time_steps_aside() -> None:
    """A partition that is a little behind the first one is read on, and waited for."""
    assert begun(LATE, X, HOW) == Steered(frozenset({AWAY}))
    nothing = watched({THERE: Millis(90), AWAY: Millis(4)}, (60, 8_000))
    assert begun(nothing, X, HOW) == Steered()


def test_a_slow_batch_makes_nothing_missing_that_is_only_a_little_behind() -> None:
    """Half of the bound is waited in any case."""
    slow = replace(HOW, latency_ms=60_000)
    assert waits_ms(X, slow) == 5_000
    near = watched({THERE: Millis(100), AWAY: Millis(95)}, (90, 5_500), (100, 10))
    assert begun(near, X, slow) == Steered()
    assert steered(near, near, Steered(), X, slow) == Steered()


def test_what_stepped_aside_stays_there() -> None:
    """What it brings later is for the stable lane."""
    back = watched({THERE: Millis(90), AWAY: Millis(90)}, (90, 9_000))
    before = Steered(frozenset({AWAY}))
    assert steered(back, back, before, X, HOW).without == {AWAY}


def test_another_cause_steps_aside_after_the_same_wait() -> None:
    """Not while the fork is behind: it has not read what is there."""
    before = Steered(frozenset({AWAY}))
    own = watched({THERE: Millis(4)}, (5, 8_600), (100, 10))
    assert steered(LATE, own, before, X, HOW).without == {AWAY, THERE}
    young = watched({THERE: Millis(4)}, (5, 8_400), (100, 10))
    assert steered(LATE, young, before, X, HOW) == before
    for level_ms in (None, SteadyMillis(NOW - 1_000)):
        behind = replace(own, level_ms=level_ms)
        assert steered(LATE, behind, before, X, HOW) == before


def test_with_delay_each_result_waits_as_long_as_the_first() -> None:
    """Event time moves only as far as it was wanted when the wait began, and never back."""
    own = Watch(X.bound_ms)
    found = begun(LATE, SLOW, HOW)
    assert found == Steered(frozenset({AWAY}), Millis(5))
    then = replace(LATE, as_of_ms=SteadyMillis(NOW + 600))
    later = steered(then, own, found, SLOW, HOW)
    assert later.most_ms == 60
    own = watched({THERE: Millis(90)}, (80, 8_600))
    assert steered(LATE, own, found, SLOW, HOW).most_ms == 80, "the stable lane may be full"
    own, released = Watch(X.bound_ms), replace(LATE, moments=())
    assert steered(released, own, later, SLOW, HOW).most_ms == 60


def test_a_fork_that_fails_rests_longer_each_time() -> None:
    """Up to a limit."""
    assert [rest_ms(n) for n in (1, 2, 3)] == [RETRY_MS, 2 * RETRY_MS, 4 * RETRY_MS]
    assert rest_ms(1_000) == RETRY_MOST_MS


def test_the_duration_of_a_batch_is_a_mean_of_the_last_ones() -> None:
    """One slow batch does not shorten the wait by its whole duration."""
    assert Measured(400).with_latency(800).latency_ms == 500


def test_the_picture_in_the_docs_is_that_of_the_table() -> None:
    """Each transition, and no other."""
    text = DOCUMENT.read_text(encoding="utf-8").split("## The phases of a fork")[1]
    lines = text.split("```mermaid")[1].split("```")[0].splitlines()
    drawn = {line.strip() for line in lines if "-->" in line and "[*]" not in line}
    assert drawn == {f"{a.value} --> {b.value}: {e.value}" for (a, e), b in TRANSITIONS.items()}

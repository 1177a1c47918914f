"""Movements of event time: their steps, and when they are due."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.promise import watermark_for
from pipeline.boundaries.release import (
    CLOCK_INTERVAL_MAX_MS,
    CLOCK_INTERVAL_MIN_MS,
    CLOCK_PART,
    JOIN_STEP_MIN_MS,
    SPENT_CLOCK_PART,
    STATE_INTERVAL_MS,
    STATELESS_INTERVAL_MS,
    STEP_MAX_MS,
    STEP_ROWS,
    WAITING_STEP_MAX_MS,
    Move,
    Release,
    Silence,
    begin,
    due_ms,
    next_move,
    planned,
    rest_ms,
    took_effect,
)
from pipeline.ids import Millis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.unit.boundaries.support import START_MS, marker

MINUTE = Windowed(TumblingWindow(size_ms=60_000, offset_ms=0))
SLIDING = Windowed(SlidingWindow(size_ms=60_000, offset_ms=0, slide_ms=7))
JOIN = Joined(span_ms=10)
WAITING = Joined(60_000, waits=True)
VISITS = Sessions(SessionWindow(gap_ms=5, longest_ms=100))
FRESH = marker({})


def in_force(shape: Shape, event_ms: int) -> CommitMarker:
    """A marker with an event time in force."""
    if isinstance(shape, Stateless):
        return marker({}, batch=1, boundary_ms=event_ms)
    return marker({}, batch=1, eviction_ms=watermark_for(shape, Millis(event_ms)))


def to(target: int, *, by_clock: bool = False) -> StreamBoundary:
    """A target."""
    return StreamBoundary(Millis(target), by_clock)


def move(shape: Shape, release: Release, target: int) -> int | None:
    """Where event time moves to; None: it stays."""
    found = next_move(shape, release, to(target))
    return None if found is None else found.to_ms


def batch(
    shape: Shape, release: Release, target: int, rows: int = 0, offsets: int = 0
) -> tuple[Release, int]:
    """A batch in which event time moves as far as it may, and where to."""
    found = next_move(shape, release, to(target))
    assert found is not None
    release = planned(release, found, START_MS)
    effect = in_force(shape, found.to_ms)
    return took_effect(shape, release, effect, rows, offsets), found.to_ms


def test_the_first_movement_is_unlimited() -> None:
    """From nothing to any time at once, for windows to just before an end."""
    assert move(MINUTE, begin(MINUTE, FRESH), 10**12 + 7) == 10**12 // 60_000 * 60_000 - 1
    assert move(JOIN, begin(JOIN, FRESH), 10**12) == 10**12


@pytest.mark.parametrize("shape", [MINUTE, SLIDING, JOIN, VISITS])
@pytest.mark.parametrize("begins_ms", [0, 10**9 + 1])
def test_the_first_movement_is_a_step_where_its_start_is_known(
    shape: Shape, begins_ms: int
) -> None:
    """However near to 1970; event time moves to a target within the step at once."""
    fresh = replace(begin(shape, FRESH), begins_ms=Millis(begins_ms))
    found = next_move(shape, fresh, to(10**12))
    assert found is not None
    assert found.cut
    assert begins_ms < found.to_ms <= begins_ms + fresh.step_ms
    assert next_move(shape, fresh, to(found.to_ms)) == Move(found.to_ms, cut=False)


@pytest.mark.parametrize("shape", [MINUTE, SLIDING, JOIN, VISITS])
def test_event_time_never_moves_to_a_time_before_1970(shape: Shape) -> None:
    """Spark would never report it as in force: a first record of 1970 would block event time."""
    assert move(shape, begin(shape, FRESH), -4_000) is None
    assert move(shape, begin(shape, FRESH), 0) is None
    assert move(shape, begin(shape, FRESH), 10**12) is not None


def test_event_time_of_windows_moves_only_to_close_one() -> None:
    """In between, a batch would cost time and emit nothing."""
    release = begin(MINUTE, in_force(MINUTE, 119_999))
    assert move(MINUTE, release, 179_998) is None
    assert move(MINUTE, release, 179_999) == 179_999
    assert move(MINUTE, release, 239_998) == 179_999


def test_a_jump_is_limited_to_the_step_which_grows_while_it_emits_little() -> None:
    """64 windows, then 16 times as many, each once the one before is in force."""
    release = begin(MINUTE, in_force(MINUTE, 59_999))
    at_ms, target, steps = 59_999, 10**9 + 59_999, []
    while move(MINUTE, release, target) is not None:
        before_ms = at_ms
        release, at_ms = batch(MINUTE, release, target, rows=10)
        steps.append((at_ms - before_ms) // 60_000)
    assert steps == [64, 1024, 15578]
    assert at_ms == (target + 1) // 60_000 * 60_000 - 1


def test_a_step_that_emits_too_much_is_halved_down_to_one_window() -> None:
    """A step of windows always closes at least one, or the lane would not progress."""
    release = begin(MINUTE, in_force(MINUTE, 59_999))
    at_ms, steps = 59_999, []
    for _ in range(9):
        before_ms = at_ms
        release, at_ms = batch(MINUTE, release, 10**9, rows=STEP_ROWS + 1)
        steps.append((at_ms - before_ms) // 60_000)
    assert steps == [64, 32, 16, 8, 4, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("emitted", "growth"),
    [(0, 16), (1, 16), (STEP_ROWS // 10, 10), (STEP_ROWS // 2, 2), (STEP_ROWS - 1, 2)],
)
def test_a_step_grows_until_it_emits_enough(emitted: int, growth: int) -> None:
    """So a lane that catches up soon has full throughput, and no step emits far too much."""
    release = begin(MINUTE, in_force(MINUTE, 59_999))
    grown, _ = batch(MINUTE, release, 10**9, rows=emitted)
    assert grown.step_ms == release.step_ms * growth


@pytest.mark.parametrize("shape", [MINUTE, JOIN, WAITING, VISITS])
def test_steps_of_a_jump_at_least_double_while_they_emit_little(shape: Shape) -> None:
    """Each one shows how many rows the next one may emit."""
    release = begin(shape, in_force(shape, 59_999))
    for _ in range(4):
        before = release
        release, _ = batch(shape, release, 10**15, rows=300)
        assert release.step_ms >= 2 * before.step_ms


def test_a_movement_below_the_limit_does_not_grow_the_step() -> None:
    """Years of small movements are no evidence about a jump after an outage."""
    release = begin(MINUTE, in_force(MINUTE, 59_999))
    for window in range(2, 12):
        release, _ = batch(MINUTE, release, window * 60_000 - 1, rows=1)
    assert release.step_ms == 64 * 60_000


def test_the_growth_of_the_step_is_bounded() -> None:
    """Growing ends at a maximum."""
    release = replace(begin(JOIN, in_force(JOIN, 1_000)), step_ms=STEP_MAX_MS)
    release, _ = batch(JOIN, release, 10**15)
    assert release.step_ms == STEP_MAX_MS


def test_a_batch_without_a_movement_does_not_change_the_release() -> None:
    """Its rows come from what it read."""
    release = begin(MINUTE, in_force(MINUTE, 59_999))
    assert took_effect(MINUTE, release, in_force(MINUTE, 59_999), 10**6) == release
    assert took_effect(MINUTE, begin(MINUTE, FRESH), FRESH, 10**6) == begin(MINUTE, FRESH)


def test_an_event_time_in_force_within_a_window_does_not_block() -> None:
    """A marker with another window size than ours does not stall the lane."""
    release = replace(begin(MINUTE, in_force(MINUTE, 30_000)), step_ms=1_000)
    assert move(MINUTE, release, 500_000) == 59_999


def test_a_movement_of_a_join_spans_at_most_one_step() -> None:
    """Measured from what is in force."""
    release = begin(JOIN, in_force(JOIN, 5_000))
    assert move(JOIN, release, 5_600) == 5_600
    release, at_ms = batch(JOIN, release, 99_000)
    assert at_ms == 6_000
    assert move(JOIN, release, 99_000) == 22_000


def test_rows_emitted_by_a_join_do_not_shrink_its_step_below_the_first() -> None:
    """They result from the records read, not from the movement of event time."""
    release = begin(JOIN, in_force(JOIN, 5_000))
    assert batch(JOIN, release, 99_000, rows=10**6)[0].step_ms == release.step_ms


def test_a_step_of_sessions_begins_at_64_gaps_and_spans_at_least_one() -> None:
    """The number of sessions that end in it is known only afterwards."""
    release = begin(VISITS, in_force(VISITS, 5_000))
    at_ms, steps = 5_000, []
    for _ in range(8):
        before_ms = at_ms
        release, at_ms = batch(VISITS, release, 10**9, rows=STEP_ROWS + 1)
        steps.append(at_ms - before_ms)
    assert steps == [320, 160, 80, 40, 20, 10, 5, 5]


def test_the_first_step_of_a_join_that_emits_unmatched_rows_is_its_span() -> None:
    """At most as many rows are emitted at once as its state contains anyway."""
    assert begin(WAITING, FRESH).step_ms == 60_000
    assert begin(Joined(0, waits=True), FRESH).step_ms == JOIN_STEP_MIN_MS
    assert begin(Joined(10**9, waits=True), FRESH).step_ms == WAITING_STEP_MAX_MS


def test_unmatched_rows_emitted_by_a_join_shrink_its_step() -> None:
    """By those in excess of the records read, which may all be pairs; down to a second."""
    shape = Joined(60_000, 60_001, waits=True)
    release = begin(shape, in_force(shape, 5_000))
    for _ in range(9):
        read, _ = batch(shape, release, 10**9, STEP_ROWS + 8, offsets=8)
        assert read.step_ms >= release.step_ms
        release, _ = batch(shape, release, 10**9, STEP_ROWS + 9, offsets=8)
        assert release.step_ms < read.step_ms
        if release.step_ms == JOIN_STEP_MIN_MS:
            break
    assert release.step_ms == JOIN_STEP_MIN_MS


def test_a_stateless_lane_has_no_steps() -> None:
    """It has no state that could accumulate."""
    release = begin(Stateless(), in_force(Stateless(), 5))
    assert next_move(Stateless(), release, to(10**15)) == Move(Millis(10**15), cut=False)
    assert rest_ms(Stateless(), release, to(10**15)) is None


def test_the_rest_of_a_jump_is_what_its_steps_still_have_to_cross() -> None:
    """For windows up to the last end; None if the next movement reaches the target."""
    release = begin(MINUTE, in_force(MINUTE, 59_999))
    assert rest_ms(MINUTE, release, to(64 * 60_000 + 59_999)) is None
    assert rest_ms(MINUTE, release, to(80 * 60_000 + 3)) == 79 * 60_000
    assert rest_ms(MINUTE, begin(MINUTE, FRESH), to(10**12)) is None


def due_after_ms(
    shape: Shape,
    *,
    silent_ms: int | None = None,
    is_spent: bool = False,
    cut: bool = False,
    moved: bool = True,
) -> int:
    """How long after the last movement the next one is due; 0: at once."""
    release = begin(shape, in_force(shape, 5_000))
    if moved:
        release = planned(release, Move(Millis(5_000), cut=False), START_MS)
    silence = None if silent_ms is None else Silence(silent_ms, is_spent)
    at_ms = due_ms(shape, release, Move(Millis(5_001), cut=cut), silence)
    return 0 if at_ms is None else at_ms - START_MS


ALL = (MINUTE, JOIN, VISITS, Stateless())


@pytest.mark.parametrize(
    ("shape", "interval_ms"),
    [
        (Stateless(), STATELESS_INTERVAL_MS),
        (JOIN, STATE_INTERVAL_MS),
        (VISITS, STATE_INTERVAL_MS),
        (MINUTE, 0),
    ],
)
def test_a_movement_is_due_an_interval_after_the_last_one(shape: Shape, interval_ms: int) -> None:
    """Windows need none: event time moves only to their ends."""
    assert due_after_ms(shape) == interval_ms


@pytest.mark.parametrize("shape", ALL)
def test_the_first_movement_of_a_process_is_due_at_once(shape: Shape) -> None:
    """When an earlier process last moved event time is not known."""
    assert due_after_ms(shape, moved=False) == 0
    assert due_after_ms(shape, silent_ms=10**6, moved=False) == 0


@pytest.mark.parametrize("shape", ALL)
def test_a_step_of_a_jump_is_due_at_once(shape: Shape) -> None:
    """Also in a silence, which grows meanwhile: a lane that catches up is not slowed down by it."""
    assert due_after_ms(shape, cut=True) == 0
    assert due_after_ms(shape, cut=True, silent_ms=10**6) == 0


@pytest.mark.parametrize("shape", ALL)
def test_the_clock_moves_event_time_once_in_a_sixteenth_of_the_silence(shape: Shape) -> None:
    """At most once a second, and at least once a minute; windows too."""
    assert due_after_ms(shape, silent_ms=0) == CLOCK_INTERVAL_MIN_MS
    assert due_after_ms(shape, silent_ms=10_000) == CLOCK_INTERVAL_MIN_MS
    assert due_after_ms(shape, silent_ms=CLOCK_PART * 7_000) == 7_000
    assert due_after_ms(shape, silent_ms=24 * 3_600_000) == CLOCK_INTERVAL_MAX_MS


@pytest.mark.parametrize("shape", ALL)
def test_a_state_with_nothing_to_release_moves_once_in_a_quarter_of_the_silence(
    shape: Shape,
) -> None:
    """A lane without state passes on as often as before: it costs no batch."""
    part = CLOCK_PART if isinstance(shape, Stateless) else SPENT_CLOCK_PART
    assert due_after_ms(shape, silent_ms=part * 7_000, is_spent=True) == 7_000
    assert due_after_ms(shape, silent_ms=0, is_spent=True) == CLOCK_INTERVAL_MIN_MS
    assert due_after_ms(shape, silent_ms=24 * 3_600_000, is_spent=True) == CLOCK_INTERVAL_MAX_MS


@given(
    st.sampled_from(
        [
            MINUTE,
            JOIN,
            Joined(10, 11, waits=True),
            Stateless(),
            Windowed(TumblingWindow(7, 3)),
            SLIDING,
            VISITS,
        ]
    ),
    st.lists(st.tuples(st.integers(1, 10**7), st.booleans(), st.booleans()), max_size=60),
)
def test_event_time_rises_within_target_and_step(
    shape: Shape, asks: list[tuple[int, bool, bool]]
) -> None:
    """For any targets and effects."""
    release = begin(shape, FRESH)
    for target, effect, many in asks:
        found = next_move(shape, release, to(target))
        if found is None:
            continue
        before_ms = release.in_force_ms
        assert found.to_ms <= target
        assert before_ms is None or found.to_ms > before_ms
        if before_ms is not None and not isinstance(shape, Stateless):
            assert found.to_ms <= before_ms + release.step_ms
        if not found.cut and not release.catches_up and before_ms is not None:
            assert rest_ms(shape, release, to(target)) is None
        if effect:
            release, at_ms = batch(shape, release, target, rows=STEP_ROWS * 2 if many else 0)
            assert release.in_force_ms == at_ms == found.to_ms

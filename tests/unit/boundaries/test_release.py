"""Step size and pace of advances."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.external import StreamBoundary
from pipeline.boundaries.promise import watermark_for
from pipeline.boundaries.release import (
    CLOCK_PACE_MS,
    JOIN_PACE_MS,
    JOIN_STEP_MIN_MS,
    SENT_AGAIN_MS,
    SESSION_PACE_MS,
    STATELESS_PACE_MS,
    STEP_MAX_MS,
    STEP_ROWS,
    WAITING_STEP_MAX_MS,
    Release,
    begin,
    next_advance,
    took_effect,
)
from pipeline.ids import Millis, SteadyMillis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.unit.boundaries.support import START_MS, marker

MINUTE = Windowed(TumblingWindow(size_ms=60_000, offset_ms=0))
SLIDING = Windowed(SlidingWindow(size_ms=60_000, offset_ms=0, slide_ms=7))
JOIN = Joined(span_ms=10)
VISITS = Sessions(SessionWindow(gap_ms=5, longest_ms=100))
FRESH = marker({})


def advanced(shape: Shape, advance: int) -> CommitMarker:
    """A marker with an advance in force."""
    if isinstance(shape, Stateless):
        return marker({}, batch=1, boundary_ms=advance)
    return marker({}, batch=1, eviction_ms=watermark_for(shape, Millis(advance)))


def request(
    shape: Shape, release: Release, target: int, *, later: int = 0, by_clock: bool = False
) -> tuple[Release, Millis | None]:
    """Request an advance some time after the start."""
    boundary = StreamBoundary(Millis(target), by_clock)
    return next_advance(shape, release, boundary, SteadyMillis(START_MS + later))


def test_the_first_advance_is_unlimited() -> None:
    """From nothing to any time at once, for windows to just before an end."""
    assert request(MINUTE, begin(MINUTE, FRESH), 10**12 + 7)[1] == 10**12 // 60_000 * 60_000 - 1
    assert request(JOIN, begin(JOIN, FRESH), 10**12)[1] == 10**12


@pytest.mark.parametrize("shape", [MINUTE, SLIDING, JOIN, VISITS])
@pytest.mark.parametrize("begins_ms", [0, 10**9 + 1])
def test_the_first_advance_is_a_step_where_its_start_is_known(shape: Shape, begins_ms: int) -> None:
    """It continues, however near to 1970; a target within the step is advanced to at once."""
    fresh = replace(begin(shape, FRESH), begins_ms=Millis(begins_ms))
    release, sent = request(shape, fresh, 10**12)
    assert sent is not None
    assert release.cut
    assert begins_ms < sent <= begins_ms + fresh.step_ms
    assert request(shape, fresh, sent)[1] == sent


@pytest.mark.parametrize("shape", [MINUTE, SLIDING, JOIN, VISITS])
def test_there_is_no_advance_to_a_time_before_1970(shape: Shape) -> None:
    """Spark would never report it as in force: a first record of 1970 would block event time."""
    release, sent = request(shape, begin(shape, FRESH), -4_000)
    assert (release, sent) == (begin(shape, FRESH), None)
    assert request(shape, release, 0)[1] is None
    assert request(shape, release, 10**12)[1] is not None


def test_windows_advance_only_to_close_one() -> None:
    """In between, a batch would cost time and emit nothing."""
    release = begin(MINUTE, advanced(MINUTE, 119_999))
    assert request(MINUTE, release, 179_998)[1] is None
    assert request(MINUTE, release, 179_999)[1] == 179_999
    assert request(MINUTE, release, 239_998)[1] == 179_999


def test_windows_wait_for_the_last_advance_to_take_effect() -> None:
    """At most one advance is in flight."""
    release, sent = request(MINUTE, begin(MINUTE, advanced(MINUTE, 59_999)), 119_999)
    assert sent == 119_999
    assert request(MINUTE, release, 179_999, later=29_000)[1] is None
    release = took_effect(MINUTE, release, advanced(MINUTE, 119_999), 10)
    assert request(MINUTE, release, 179_999, later=29_000)[1] == 179_999


def test_a_jump_is_limited_to_the_step_which_grows_while_it_emits_little() -> None:
    """64 windows, then 16 times as many, each once the one before is in force."""
    release = begin(MINUTE, advanced(MINUTE, 59_999))
    at_ms, target, steps = 59_999, 10**9 + 59_999, []
    while at_ms < 10**9 // 60_000 * 60_000:
        release, sent = request(MINUTE, release, target)
        if sent is None:
            break
        steps.append((sent - at_ms) // 60_000)
        assert request(MINUTE, release, target)[1] is None
        release, at_ms = took_effect(MINUTE, release, advanced(MINUTE, sent), 10), sent
    assert steps == [64, 1024, 15578]
    assert at_ms == (target + 1) // 60_000 * 60_000 - 1


def test_a_step_that_emits_too_much_is_halved_down_to_one_window() -> None:
    """A step of windows always closes at least one, or the lane would not progress."""
    release = begin(MINUTE, advanced(MINUTE, 59_999))
    at_ms, steps = 59_999, []
    for _ in range(9):
        release, sent = request(MINUTE, release, 10**9)
        assert sent is not None
        steps.append((sent - at_ms) // 60_000)
        release = took_effect(MINUTE, release, advanced(MINUTE, sent), STEP_ROWS + 1)
        at_ms = sent
    assert steps == [64, 32, 16, 8, 4, 2, 1, 1, 1]


@pytest.mark.parametrize(
    ("emitted", "growth"),
    [(0, 16), (1, 16), (STEP_ROWS // 10, 10), (STEP_ROWS // 2, 2), (STEP_ROWS - 1, 2)],
)
def test_a_step_grows_until_it_emits_enough(emitted: int, growth: int) -> None:
    """So a lane that catches up soon has full throughput, and no step emits far too much."""
    release, sent = request(MINUTE, begin(MINUTE, advanced(MINUTE, 59_999)), 10**9)
    assert sent is not None
    grown = took_effect(MINUTE, release, advanced(MINUTE, sent), emitted)
    assert grown.step_ms == release.step_ms * growth


def test_an_advance_below_the_limit_does_not_grow_the_step() -> None:
    """Years of small advances are no evidence about a jump after an outage."""
    release = begin(MINUTE, advanced(MINUTE, 59_999))
    for window in range(2, 12):
        release, sent = request(MINUTE, release, window * 60_000 - 1)
        assert sent is not None
        release = took_effect(MINUTE, release, advanced(MINUTE, sent), 1)
    assert release.step_ms == 64 * 60_000


def test_the_growth_of_the_step_is_bounded() -> None:
    """Growing ends at a maximum."""
    release = replace(begin(JOIN, advanced(JOIN, 1_000)), step_ms=STEP_MAX_MS)
    release, sent = request(JOIN, release, 10**15)
    assert sent is not None
    assert took_effect(JOIN, release, advanced(JOIN, sent), 0).step_ms == STEP_MAX_MS


def test_an_advance_in_force_within_a_window_does_not_block() -> None:
    """A marker with another window size than ours does not stall the lane."""
    release = replace(begin(MINUTE, advanced(MINUTE, 30_000)), step_ms=1_000)
    assert request(MINUTE, release, 500_000)[1] == 59_999


def test_the_advances_of_a_join_in_flight_span_at_most_one_step() -> None:
    """A join may get another advance before the last took effect, within the step."""
    release = begin(JOIN, advanced(JOIN, 5_000))
    release, first = request(JOIN, release, 5_600)
    release, second = request(JOIN, release, 99_000, later=JOIN_PACE_MS)
    assert (first, second) == (5_600, 6_000)
    assert request(JOIN, release, 99_000, later=10 * JOIN_PACE_MS)[1] is None
    release = took_effect(JOIN, release, advanced(JOIN, 6_000), 0)
    assert request(JOIN, release, 99_000, later=10 * JOIN_PACE_MS)[1] == 22_000


def test_a_join_waits_for_its_first_advance() -> None:
    """Until then there is no reference point for a step."""
    release, _ = request(JOIN, begin(JOIN, FRESH), 5_000)
    assert request(JOIN, release, 5_001, later=29_000)[1] is None


def test_rows_emitted_by_a_join_do_not_shrink_its_step_below_the_first() -> None:
    """They result from the records read, not from the advance of event time."""
    release, sent = request(JOIN, begin(JOIN, advanced(JOIN, 5_000)), 99_000)
    assert sent is not None
    assert took_effect(JOIN, release, advanced(JOIN, sent), 10**6).step_ms == release.step_ms


def test_a_step_of_sessions_begins_at_64_gaps_and_spans_at_least_one() -> None:
    """The number of sessions that end in it is known only afterwards."""
    release = begin(VISITS, advanced(VISITS, 5_000))
    at_ms, steps = 5_000, []
    for number in range(8):
        release, sent = request(VISITS, release, 10**9, later=number * SESSION_PACE_MS)
        assert sent is not None
        steps.append(sent - at_ms)
        release, at_ms = took_effect(VISITS, release, advanced(VISITS, sent), STEP_ROWS + 1), sent
    assert steps == [320, 160, 80, 40, 20, 10, 5, 5]


def test_the_first_step_of_a_join_that_emits_unmatched_rows_is_its_span() -> None:
    """At most as many rows are emitted at once as its state contains anyway."""
    assert begin(Joined(60_000, waits=True), FRESH).step_ms == 60_000
    assert begin(Joined(0, waits=True), FRESH).step_ms == JOIN_STEP_MIN_MS
    assert begin(Joined(10**9, waits=True), FRESH).step_ms == WAITING_STEP_MAX_MS


def test_unmatched_rows_emitted_by_a_join_shrink_its_step() -> None:
    """By those in excess of the records read, which may all be pairs; down to a second."""
    shape = Joined(60_000, 60_001, waits=True)
    release = begin(shape, advanced(shape, 5_000))
    for _ in range(9):
        release, sent = request(shape, release, 10**9)
        assert sent is not None
        read = took_effect(shape, release, advanced(shape, sent), STEP_ROWS + 8, offsets=8)
        assert read.step_ms >= release.step_ms
        release = took_effect(shape, release, advanced(shape, sent), STEP_ROWS + 9, offsets=8)
        assert release.step_ms < read.step_ms
        if release.step_ms == JOIN_STEP_MIN_MS:
            break
    assert release.step_ms == JOIN_STEP_MIN_MS


def test_a_step_that_was_used_in_full_takes_effect_before_the_next_one() -> None:
    """Two steps on their way would take turns, and neither would show whether steps may grow."""
    waiting = Joined(60_000, waits=True)
    start = begin(waiting, advanced(waiting, 1_000))
    release, near = request(waiting, start, 9_000)
    assert near == 9_000
    release, first = request(waiting, release, 10**12, later=1_000)
    assert first == 61_000
    release = took_effect(waiting, release, advanced(waiting, near), 300)
    assert request(waiting, release, 10**12, later=2_000) == (release, None)
    steps = [release.step_ms]
    sent: int | None = first
    for number in range(3, 7):
        assert sent is not None
        release = took_effect(waiting, release, advanced(waiting, sent), 300)
        steps.append(release.step_ms)
        release, sent = request(waiting, release, 10**12, later=number * 1_000)
    assert all(later >= 2 * earlier for earlier, later in pairwise(steps))


@pytest.mark.parametrize("shape", [MINUTE, JOIN])
def test_an_advance_that_does_not_take_effect_is_sent_again(shape: Shape) -> None:
    """Its record may be lost; nothing else would be sent."""
    start = begin(shape, advanced(shape, 59_999))
    release, sent = request(shape, start, 10**12)
    assert sent is not None
    assert request(shape, release, 10**12, later=SENT_AGAIN_MS - 1) == (release, None)
    release, again = request(shape, release, 10**12, later=SENT_AGAIN_MS)
    assert again == sent
    assert request(shape, release, 10**12, later=SENT_AGAIN_MS + 1) == (release, None)


def test_a_stateless_lane_has_no_steps() -> None:
    """It has no state that could accumulate."""
    assert request(Stateless(), begin(Stateless(), advanced(Stateless(), 5)), 10**15)[1] == 10**15


@pytest.mark.parametrize(
    ("shape", "by_clock", "pace_ms"),
    [
        (Stateless(), False, STATELESS_PACE_MS),
        (JOIN, False, JOIN_PACE_MS),
        (VISITS, False, SESSION_PACE_MS),
        (Stateless(), True, CLOCK_PACE_MS),
        (JOIN, True, CLOCK_PACE_MS),
    ],
)
def test_advances_are_paced(
    shape: Shape,
    by_clock: bool,  # noqa: FBT001 - a case of the table
    pace_ms: int,
) -> None:
    """Not before the pace has passed, and then up to everything that is due."""
    release, sent = request(shape, begin(shape, advanced(shape, 5_000)), 5_001, by_clock=by_clock)
    assert sent == 5_001
    assert request(shape, release, 5_002, later=pace_ms - 1, by_clock=by_clock)[1] is None
    assert request(shape, release, 5_003, later=pace_ms, by_clock=by_clock)[1] == 5_003


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
    st.lists(
        st.tuples(st.integers(1, 10**7), st.integers(0, 2_000), st.booleans(), st.booleans()),
        max_size=60,
    ),
)
def test_advances_rise_within_target_and_step(
    shape: Shape, asks: list[tuple[int, int, bool, bool]]
) -> None:
    """For any targets, pauses and effects."""
    release, passed = begin(shape, FRESH), 0
    for target, pause, effect, many in asks:
        before, passed = release, passed + pause
        release, sent = request(shape, release, target, later=passed)
        if sent is not None:
            assert sent <= target
            assert before.released_ms is None or sent > before.released_ms
            if before.in_force_ms is not None and not isinstance(shape, Stateless):
                assert sent <= before.in_force_ms + before.step_ms
        if effect and release.released_ms is not None:
            rows = STEP_ROWS * 2 if many else 0
            release = took_effect(shape, release, advanced(shape, release.released_ms), rows)
            assert release.in_force_ms in (release.released_ms, None)

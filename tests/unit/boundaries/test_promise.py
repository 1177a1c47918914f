"""Promises of a lane, and translation between event time and watermarks."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.promise import in_force, kept_from, promise, watermark_for
from pipeline.ids import Millis, StreamName
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow, Window
from tests.unit.boundaries.made_windows import WINDOWS, ends_over
from tests.unit.boundaries.support import marker

TEN = Windowed(TumblingWindow(size_ms=10, offset_ms=0))
JOIN = Joined(span_ms=60)
SOURCE = StreamName("s")
VISITS = Sessions(SessionWindow(gap_ms=10, longest_ms=100))


def promised(
    shape: Shape,
    *,
    eviction: int | None = None,
    passed: int | None = None,
    previous: int | None = None,
) -> int | None:
    """`promise` with plain numbers."""
    return promise(
        shape,
        eviction_ms=None if eviction is None else Millis(eviction),
        passed_ms=None if passed is None else Millis(passed),
        previous_ms=None if previous is None else Millis(previous),
    )


def test_a_stateless_lane_promises_the_event_time_that_came_into_force() -> None:
    """It has no state, so the boundary of its input is that of its output."""
    assert promised(Stateless(), passed=500, eviction=9_999) == 500


def test_windows_promise_up_to_the_end_of_the_next_one() -> None:
    """The time of a result is its window's end; the next possible one is the first end after W."""
    assert promised(TEN, eviction=100) == 109
    assert promised(TEN, eviction=109) == 109
    assert promised(TEN, eviction=110) == 119


def test_a_join_promises_its_watermark() -> None:
    """A pair has the time of its later row, which must be above W, or it is late."""
    assert promised(JOIN, eviction=100) == 100


def test_sessions_promise_their_watermark() -> None:
    """The time of a session is its end, and one that ends at W has been emitted."""
    assert promised(VISITS, eviction=105) == 105


def test_nothing_is_promised_before_any_watermark() -> None:
    """Spark's initial watermark of 0 has no meaning."""
    assert promised(TEN) is None
    assert promised(TEN, eviction=0) is None
    assert promised(JOIN, eviction=0) is None
    assert promised(Stateless()) is None


def test_a_promise_never_falls() -> None:
    """An earlier promise stays valid."""
    assert promised(Stateless(), passed=5, previous=8) == 8
    assert promised(JOIN, previous=8) == 8
    assert promised(JOIN, eviction=5, previous=8) == 8


def test_the_event_time_in_force_is_computed_from_the_marker() -> None:
    """It equals the event time that the batch was planned with, for every shape."""
    for shape in (TEN, JOIN, VISITS):
        watermark = watermark_for(shape, Millis(499))
        assert in_force(shape, marker({}, eviction_ms=watermark)) == 499
        assert in_force(shape, marker({}, eviction_ms=0)) is None
    assert in_force(Stateless(), marker({}, boundary_ms=499)) == 499


@given(WINDOWS, st.integers(1, 1_000), st.integers(1, 1_000))
def test_later_batches_of_windows_emit_only_above_the_promise(
    window: Window, event_ms: int, time: int
) -> None:
    """A row counts in exactly the windows whose ends are above the promise."""
    shape = Windowed(window)
    watermark = watermark_for(shape, Millis(event_ms))
    ends = ends_over(window, time)
    still_open = [end for end in ends if end > watermark]
    if time > event_ms:
        assert still_open == ends
    if still_open:
        assert still_open[0] > (promised(shape, eviction=watermark) or 0)
        kept = kept_from(shape, watermark, SOURCE)
        assert kept is not None
        assert time >= kept


@given(st.integers(0, 100), st.integers(100, 1_000), st.integers(0, 200), st.integers(0, 1_000))
def test_a_join_may_still_need_rows_within_its_span(
    span: int, watermark: int, distance_above: int, distance: int
) -> None:
    """Every row that can have a partner above the watermark counts as needed."""
    newer = watermark + 1 + distance_above
    older = newer - min(distance, span)
    kept = kept_from(Joined(span), Millis(watermark), SOURCE)
    assert kept is not None
    assert older >= kept
    assert kept_from(Joined(span), None, SOURCE) is None

"""What a lane promises, and how advances and watermarks translate."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.promise import advance_in_force, kept_from, promise, watermark_for
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
    advance: int | None = None,
    previous: int | None = None,
) -> int | None:
    """`promise` with plain numbers."""
    return promise(
        shape,
        eviction_ms=None if eviction is None else Millis(eviction),
        advance_ms=None if advance is None else Millis(advance),
        previous_ms=None if previous is None else Millis(previous),
    )


def test_a_stateless_lane_passes_the_advance_on() -> None:
    """It holds nothing back, so what is true of its input is true of its output."""
    assert promised(Stateless(), advance=500, eviction=9_999) == 500


def test_windows_promise_up_to_the_end_of_the_next_one() -> None:
    """Results carry the window's end; the next that can come is the first end after W."""
    assert promised(TEN, eviction=100) == 109
    assert promised(TEN, eviction=109) == 109
    assert promised(TEN, eviction=110) == 119


def test_a_join_promises_its_watermark() -> None:
    """A pair has the time of its later row, and that row has to lie above W to be read at all."""
    assert promised(JOIN, eviction=100) == 100


def test_sessions_promise_their_watermark() -> None:
    """A session carries its end, and the one that ends at W is out."""
    assert promised(VISITS, eviction=105) == 105


def test_nothing_is_promised_before_any_watermark() -> None:
    """Spark's initial watermark of 0 says nothing."""
    assert promised(TEN) is None
    assert promised(TEN, eviction=0) is None
    assert promised(JOIN, eviction=0) is None
    assert promised(Stateless()) is None


def test_a_promise_never_goes_back() -> None:
    """What was promised stays promised."""
    assert promised(Stateless(), advance=5, previous=8) == 8
    assert promised(JOIN, previous=8) == 8
    assert promised(JOIN, eviction=5, previous=8) == 8


def test_what_is_in_force_is_read_back_from_the_marker() -> None:
    """An advance comes back as it was sent, whatever the shape makes of it."""
    for shape in (TEN, JOIN, VISITS):
        watermark = watermark_for(shape, Millis(499))
        assert advance_in_force(shape, marker({}, eviction_ms=watermark)) == 499
        assert advance_in_force(shape, marker({}, eviction_ms=0)) is None
    assert advance_in_force(Stateless(), marker({}, boundary_ms=499)) == 499


@given(WINDOWS, st.integers(1, 1_000), st.integers(1, 1_000))
def test_windows_later_batches_only_emit_above_the_promise(
    window: Window, advance: int, time: int
) -> None:
    """A row counts in windows whose ends lie above what was promised, and only in those."""
    shape = Windowed(window)
    watermark = watermark_for(shape, Millis(advance))
    ends = ends_over(window, time)
    still_open = [end for end in ends if end > watermark]
    if time > advance:
        assert still_open == ends
    if still_open:
        assert still_open[0] > (promised(shape, eviction=watermark) or 0)
        kept = kept_from(shape, watermark, SOURCE)
        assert kept is not None
        assert time >= kept


@given(st.integers(0, 100), st.integers(100, 1_000), st.integers(0, 200), st.integers(0, 1_000))
def test_a_join_may_still_need_rows_within_its_span(
    span: int, watermark: int, ahead: int, distance: int
) -> None:
    """Every row that can meet one above the watermark is counted as kept."""
    newer = watermark + 1 + ahead
    older = newer - min(distance, span)
    kept = kept_from(Joined(span), Millis(watermark), SOURCE)
    assert kept is not None
    assert older >= kept
    assert kept_from(Joined(span), None, SOURCE) is None

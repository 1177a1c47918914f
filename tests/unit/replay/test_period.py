import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import RefusedError
from pipeline.ids import Millis, StreamName
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed, reach_ms
from pipeline.network.boxes.windows import TumblingWindow, Window
from pipeline.replay.period import Interval, Period, period
from tests.unit.boundaries.made_sessions import SESSIONS, sessions_of
from tests.unit.boundaries.made_windows import WINDOWS, ends_over

TEN = Windowed(TumblingWindow(size_ms=10, offset_ms=3))
JOIN = Joined(span_ms=4)
VISITS = Sessions(SessionWindow(gap_ms=2, longest_ms=10))
PLACE = "fragment cars.means"


def found(shape: Shape, start: int, until: int | None, boundary: int | None) -> Period:
    """The period, with plain numbers."""
    interval = Interval(Millis(start), None if until is None else Millis(until))
    return period(shape, interval, None if boundary is None else Millis(boundary), PLACE)


def test_a_box_without_state_reads_the_requested_period() -> None:
    """Each result depends on one record, so no boundary is needed."""
    assert found(Stateless(), 5, None, None) == Period(Millis(5), None, Millis(5), None)
    assert found(Stateless(), 5, 9, None) == Period(Millis(5), Millis(9), Millis(5), Millis(9))


def test_every_window_that_overlaps_the_period_is_computed_completely() -> None:
    """Windows are 3 to 13, 13 to 23, and so on; a result has the time of its window's end."""
    assert found(TEN, 15, 24, 1_000) == Period(Millis(23), Millis(34), Millis(13), Millis(33))
    assert found(TEN, 13, 23, 1_000) == Period(Millis(23), Millis(24), Millis(13), Millis(23))


def test_without_an_end_all_complete_results_are_computed() -> None:
    """The last window is the last one that the fragment has closed."""
    assert found(TEN, 15, None, 52) == Period(Millis(23), Millis(53), Millis(13), Millis(43))
    assert found(JOIN, 15, None, 52) == Period(Millis(15), Millis(53), Millis(11), Millis(53))


def test_the_input_of_pairs_begins_a_span_before_them() -> None:
    """A pair has the time of its later row; the other one is at most the span older."""
    assert found(JOIN, 15, 20, 100) == Period(Millis(15), Millis(20), Millis(11), Millis(20))


def test_the_input_of_rows_without_a_partner_ends_after_their_wait() -> None:
    """Records after the last result are read too, because they may be its partner."""
    join = Joined(span_ms=4, behind_ms=3)
    assert found(join, 15, 20, 100) == Period(Millis(15), Millis(20), Millis(11), Millis(23))


@pytest.mark.parametrize("shape", [TEN, VISITS, JOIN], ids=["windows", "sessions", "join"])
@pytest.mark.parametrize(("until", "boundary"), [(None, None), (None, 9), (30, 25)])
def test_incomplete_results_are_refused(
    shape: Shape, until: int | None, boundary: int | None
) -> None:
    """The error contains the boundary of the fragment."""
    with pytest.raises(RefusedError) as refused:
        found(shape, 15, until, boundary)
    complete = "none" if boundary is None else f"1970-01-01T00:00:00.{boundary:03d}Z"
    assert complete in refused.value.message
    assert refused.value.place == PLACE


def test_an_end_before_the_beginning_is_refused() -> None:
    """Also an empty interval."""
    with pytest.raises(RefusedError, match="does not lie after"):
        found(Stateless(), 5, 5, None)


@given(WINDOWS, st.integers(0, 500), st.integers(1, 500), st.integers(0, 1_500))
def test_the_period_contains_exactly_the_windows_that_overlap_the_request(
    window: Window, start: int, length: int, at: int
) -> None:
    """Window by window; the input period contains the records of all of them, and no others."""
    one = found(Windowed(window), start, start + length, 5_000)
    overlaps = []
    for end in ends_over(window, at):
        overlaps.append(end > start and end - window.size_ms < start + length)
        assert one.has_result(Millis(end)) == overlaps[-1]
    assert one.has_input(Millis(at)) == any(overlaps)


@given(
    SESSIONS, st.integers(100, 400), st.integers(1, 200), st.lists(st.integers(0, 700), max_size=30)
)
def test_sessions_that_end_in_the_period_depend_only_on_its_input(
    window: SessionWindow, start: int, length: int, times: list[int]
) -> None:
    """Records outside the input period change none of them."""
    one = found(Sessions(window), start, start + length, 5_000)

    def in_period(records: list[int]) -> list[list[int]]:
        every = sessions_of(window, records)
        return [s for s in every if one.has_result(Millis(s[-1] + window.gap_ms))]

    assert in_period([at for at in times if one.has_input(Millis(at))]) == in_period(times)


@given(
    SESSIONS,
    st.integers(100, 400),
    st.none() | st.integers(1, 200),
    st.lists(st.integers(0, 700), max_size=30),
    st.integers(0, 700),
)
def test_a_late_record_changes_published_sessions_only_inside_or_only_outside_the_period(
    window: SessionWindow, start: int, length: int | None, times: list[int], late: int
) -> None:
    """Otherwise a merged session could be outside, and one of the two that it replaces inside."""
    interval = Interval(Millis(start), None if length is None else Millis(start + length))
    shape = Sessions(window)
    try:
        one = period(shape, interval, Millis(900), PLACE, published=True)
    except RefusedError:
        return
    before, after = sessions_of(window, times), sessions_of(window, [*times, late])
    changed = [s for s in before if s not in after] + [s for s in after if s not in before]
    assert len({one.has_result(Millis(s[-1] + window.gap_ms)) for s in changed}) <= 1
    assert one.results_from_ms <= start
    assert length is None or (one.results_until_ms or 0) >= start + length


def test_the_reach_of_results_into_the_past() -> None:
    """A window: its size. A session: its maximum length and a gap. A pair: its span. Others: 0.

    An as-of join: 0 into its rows, its span into the table.
    """
    rows, table = StreamName("rows"), StreamName("table")
    as_of = Joined(9, waits=True, passing=frozenset({rows}))
    assert [reach_ms(one, rows) for one in (Stateless(), TEN, VISITS, JOIN)] == [0, 10, 12, 4]
    assert (reach_ms(as_of, rows), reach_ms(as_of, table)) == (0, 9)

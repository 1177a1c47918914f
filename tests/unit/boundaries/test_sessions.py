"""Sessions under event time, compared with a query that does the same as Spark, batch by batch."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.promise import kept_from, promise, watermark_for
from pipeline.ids import Millis, StreamName
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Sessions
from tests.unit.boundaries.made_sessions import SESSIONS, sessions_of

BATCHES = st.lists(st.tuples(st.lists(st.integers(1, 200), max_size=4), st.integers(0, 40)))


@given(SESSIONS, BATCHES)
def test_published_sessions_are_those_of_all_records_in_time(
    window: SessionWindow, batches: list[tuple[list[int], int]]
) -> None:
    """However they are cut into batches: no session comes out before its last record was read.

    Nor at or below what was promised; and what is open is made of records that are kept.
    """
    shape = Sessions(window)
    in_time: list[int] = []
    waiting: list[int] = []
    published: list[list[int]] = []
    event_ms, late, promised = 0, 0, 0
    for times, rise in [*batches, ([], 1_000)]:
        waiting += (accepted := [at for at in times if at > late])
        in_time += accepted
        event_ms += rise
        watermark = watermark_for(shape, Millis(event_ms)) if event_ms else Millis(0)
        closed = [s for s in sessions_of(window, waiting) if s[-1] + window.gap_ms <= watermark]
        assert all(s[-1] + window.gap_ms > promised for s in closed)
        published += closed
        waiting = [at for at in waiting if not any(at in s for s in closed)]
        kept = kept_from(shape, watermark, StreamName("s"))
        assert not waiting or kept is None or kept <= min(waiting)
        promised = promise(shape, eviction_ms=watermark, passed_ms=None, previous_ms=None) or 0
        late = watermark
    assert sorted(published) == sessions_of(window, in_time)

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import BatchId, Epoch, Millis, NetworkVersion
from pipeline.lanes.needed_letters import DeadLetterSpan
from pipeline.spark.batch.committed import Circumstances, Committed
from pipeline.spark.batch.verdict import Executed, Judge
from tests.unit.spark.batch.test_verdict import FILTER, WINDOWS, results
from tests.unit.spark.write.sink_twins import AT, NOW, facts, first

JUDGE = Judge(WINDOWS, NetworkVersion(1), {})
STEPS = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.integers(0, 300_000), st.integers(0, 200_000))
)
"""Records, the largest event time, and by how much event time moves."""


def after(last: Committed, read: int, largest: int | None, moved: int, written: str) -> Committed:
    """A further batch of windows; `written`: the topic of its dead letters, if it has any."""
    marker = last.marker
    end = marker.end[AT] + read
    before_ms = 0 if marker.batch < 0 else marker.eviction_ms or 0
    of = facts(
        marker.batch + 1,
        end,
        largest={} if largest is None or not read else {AT: Millis(NOW + largest)},
        late_ms=Millis(before_ms) if before_ms else None,
        eviction_ms=Millis(max(before_ms, NOW) + moved),
    )
    verdict = JUDGE.judge(marker, Executed(of, None, results(()), (), {}))
    span = DeadLetterSpan(written, {0: marker.end[AT]}, of.end) if written else None
    return last.after(verdict, JUDGE.shape, Circumstances(Epoch(3), span, {}, NOW))


@given(STEPS)
def test_what_is_needed_never_goes_back_and_is_never_ahead(
    steps: list[tuple[int, int | None, int]],
) -> None:
    """Of records and of dead letters; a lane that continues from any marker needs the same."""
    last = Committed.begun(first(WINDOWS))
    for read, largest, moved in steps:
        was, last = last, after(last, read, largest, moved, "letters")
        marker = last.marker
        assert was.marker.needed[AT] <= marker.needed[AT] <= marker.end[AT]
        assert marker.start == was.marker.end
        kept = was.marker.letters_from.get(0, 0)
        assert kept <= marker.letters_from.get(0, marker.end[AT]) <= marker.end[AT]
        assert Committed.begun(marker).marker == marker


def test_a_lane_without_state_needs_nothing_that_it_has_read() -> None:
    """Its positions are all that it needs."""
    judge = Judge(FILTER, NetworkVersion(1), {})
    of = facts(0, 5, largest={AT: NOW})
    verdict = judge.judge(first(FILTER), Executed(of, NOW, results(()), (), {}))
    around = Circumstances(Epoch(4), None, {0: of.end[AT]}, Millis(9))
    found = Committed.begun(first(FILTER)).after(verdict, judge.shape, around)
    assert found.marker.needed == found.marker.end == {AT: 5}
    assert (found.marker.epoch, found.marker.output_ends) == (4, {0: 5})
    assert (found.marker.written_at_ms, found.marker.boundary_ms) == (9, NOW)


def test_event_time_that_is_passed_on_changes_nothing_else() -> None:
    """The next batch follows on the one before."""
    last = after(Committed.begun(first(WINDOWS)), 5, 0, 0, "letters")
    marker = last.marker
    assert marker.boundary_ms is not None
    passed = last.passed_on(Millis(marker.boundary_ms + 1), Millis(9))
    assert replace(passed, marker=marker) == last
    assert after(passed, 1, None, 60_000, "").marker.batch == BatchId(marker.batch + 1)

"""Runs of batches with many late records."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.late import LATE_LEAST_MS, LateRun, with_batch
from pipeline.ids import SteadyMillis
from pipeline.markers.commit_marker import Totals
from tests.unit.agent.support import CARS, Agent, at

BATCHES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 5_000)), max_size=30
)


def run_of(*batches: tuple[int, int, int]) -> LateRun | None:
    """The run after batches: records read, late ones, and the time before it."""
    run, totals, now_ms = None, Totals(), SteadyMillis(0)
    for read, late, pause_ms in batches:
        after = Totals(records_in=totals.records_in + read, late_dropped=totals.late_dropped + late)
        now_ms = SteadyMillis(now_ms + pause_ms)
        run, totals = with_batch(run, totals, after, now_ms), after
    return run


def test_a_quarter_of_a_batch_makes_a_run() -> None:
    """With two inputs, one of them may be in time."""
    assert run_of((8, 1, 0)) is None
    assert run_of((8, 2, 7), (4, 4, 10)) == LateRun(SteadyMillis(7), SteadyMillis(17), 12, 6)


def test_a_batch_in_time_ends_a_run_and_an_empty_one_does_not() -> None:
    """Event time may move in batches without records."""
    assert run_of((4, 4, 5), (4, 0, 5)) is None
    assert run_of((4, 4, 5), (0, 0, 5)) == LateRun(SteadyMillis(5), SteadyMillis(5), 4, 4)


def test_a_record_that_is_late_on_two_paths_counts_once() -> None:
    """As in a join of a stream with itself."""
    assert run_of((6, 12, 3)) == LateRun(SteadyMillis(3), SteadyMillis(3), 6, 6)


def test_a_few_late_records_at_one_time_are_not_shown() -> None:
    """However long ago they were."""
    short = run_of((4, 4, 5), (4, 4, LATE_LEAST_MS - 1), (0, 0, 60_000))
    long = run_of((4, 4, 5), (4, 4, LATE_LEAST_MS))
    assert short is not None
    assert long is not None
    assert (short.is_shown, long.is_shown) == (False, True)


@given(BATCHES)
def test_a_run_counts_the_batches_since_the_last_one_in_time(
    batches: list[tuple[int, int, int]],
) -> None:
    """Those with records."""
    numbers = [number for number, (read, late, _) in enumerate(batches) if read and late * 4 < read]
    counted = [one for one in batches[numbers[-1] + 1 if numbers else 0 :] if one[0]]
    run = run_of(*batches)
    if run is None:
        assert not counted
    else:
        assert run.read == sum(read for read, _, _ in counted)
        assert run.late == sum(min(read, late) for read, late, _ in counted)


def test_late_records_are_reported_with_the_event_time(agent: Agent) -> None:
    """Until a batch is in time."""
    one = at(CARS, 0)
    for count in (1, 2, 3):
        agent.finished({one: 10 * count}, read=10, late=9)
        agent.wait(6_000)
    agent.ends({one: 30})
    report = agent.report()
    assert (report.late_records, report.late_read, report.late_span_ms) == (27, 30, 12_000)
    assert report.late_since_ms == report.reported_at_ms - 18_000
    agent.finished({one: 40}, read=10)
    assert agent.report().late_since_ms is None

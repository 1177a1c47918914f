"""Lag of a lane, as reported."""

from dataclasses import replace

from pipeline.agent.lag import ENDS_LOG_MAX, STALLED_LEAST_MS
from pipeline.catalog.fragment_status import LaneState
from pipeline.ids import RunNumber
from pipeline.lanes.events import LaneTimed
from tests.unit.agent.support import CARS, LANE, LEFT, Agent, at, deployed

ONE, TWO = at(CARS, 0), at(CARS, 1)


def test_a_lane_at_the_ends_of_its_inputs_has_no_lag(agent: Agent) -> None:
    """Neither in records nor in time."""
    agent.ends({ONE: 10, TWO: 20})
    agent.finished({ONE: 10, TWO: 20})
    agent.wait(3_000)
    report = agent.report()
    assert (report.lag_records, report.lag_ms) == (0, 0)
    assert report.inputs == ((CARS.topic, 0),)


def test_lag_in_records_is_end_minus_finished(agent: Agent) -> None:
    """Summed over partitions; a position above an older end counts as 0."""
    agent.finished({ONE: 4, TWO: 25})
    agent.ends({ONE: 10, TWO: 20})
    assert agent.report().lag_records == 6


def test_lag_in_time_counts_from_when_the_end_equalled_the_position(agent: Agent) -> None:
    """The oldest unfinished record arrived after that."""
    agent.ends({ONE: 0, TWO: 0})
    agent.wait(1_000)
    agent.ends({ONE: 5, TWO: 0})
    agent.wait(1_000)
    agent.ends({ONE: 9, TWO: 0})
    agent.wait(500)
    assert agent.report().lag_ms == 2_500
    agent.finished({ONE: 5})
    assert agent.report().lag_ms == 1_500
    agent.finished({ONE: 9})
    assert agent.report().lag_ms == 0


def test_a_steady_flow_has_a_small_constant_lag(agent: Agent) -> None:
    """A lane that always processes the newest batch never reaches the end, and is not behind."""
    for second in range(300):
        agent.ends({ONE: second * 100 + 100, TWO: 0})
        agent.wait(1_000)
        agent.finished({ONE: second * 100 + 100})
        agent.ends({ONE: second * 100 + 150, TWO: 0})
        assert (agent.report().lag_ms or 0) <= 1_000


def test_a_long_lag_is_measured_in_bounded_memory(agent: Agent) -> None:
    """A lane without progress for ten minutes has a lag of ten minutes."""
    agent.ends({ONE: 0, TWO: 0})
    for step in range(1, 1_200):
        agent.wait(500)
        agent.ends({ONE: step, TWO: 0})
        assert len(agent.running().ends_log[CARS.stream]) <= ENDS_LOG_MAX
    assert agent.report().lag_ms == 1_199 * 500
    agent.finished({ONE: 1_190})
    assert (agent.report().lag_ms or 0) <= 5_000


def test_lag_after_a_restart_counts_from_the_last_batch_before() -> None:
    """Records that the previous run had not read may have been waiting since then."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.wait(60_000)
    agent.started(CARS)
    agent.ends({ONE: 1_000, TWO: 0})
    agent.wait(4_000)
    assert agent.report().lag_ms == 64_000


def test_unread_records_without_the_end_of_a_batch_are_a_stall(agent: Agent) -> None:
    """From the arrival of the records, or the last end of a batch, whichever is later."""
    agent.ends({ONE: 0, TWO: 0})
    agent.wait(3_600_000)
    assert agent.report().stalled_since_ms is None
    agent.ends({ONE: 0, TWO: 0})
    since_ms = agent.now.wall_ms
    agent.wait(1_000)
    agent.ends({ONE: 5, TWO: 0})
    agent.wait(STALLED_LEAST_MS - 1_001)
    agent.ends({ONE: 5, TWO: 0})
    assert agent.report().stalled_since_ms is None
    agent.wait(1)
    agent.ends({ONE: 5, TWO: 0})
    assert agent.report().stalled_since_ms == since_ms
    agent.finished({ONE: 4})
    assert agent.report().stalled_since_ms is None
    agent.wait(STALLED_LEAST_MS)
    agent.ends({ONE: 5, TWO: 0})
    assert agent.report().stalled_since_ms == agent.now.wall_ms - STALLED_LEAST_MS
    agent.finished({ONE: 5})
    assert agent.report().stalled_since_ms is None


def test_a_planned_batch_that_does_not_end_is_a_stall_without_records(agent: Agent) -> None:
    """Event time moves by the clock, or by a boundary."""
    agent.ends({ONE: 0, TWO: 0})
    agent.wait(1)
    running, planned_ms = agent.running(), agent.now.wall_ms
    release = replace(running.time.release, moved_at_ms=agent.now.steady_ms)
    agent.receive(LaneTimed(LANE, RunNumber(1), replace(running.time, release=release)))
    assert agent.report().stalled_since_ms is None
    agent.wait(STALLED_LEAST_MS)
    agent.ends({ONE: 0, TWO: 0})
    report = agent.report()
    assert (report.lag_records, report.stalled_since_ms) == (0, planned_ms)
    agent.finished({})
    assert agent.report().stalled_since_ms is None


def test_a_lane_that_is_behind_and_ends_batches_is_not_stalled(agent: Agent) -> None:
    """However old its lag."""
    for second in range(0, 300, 10):
        agent.ends({ONE: 100_000, TWO: 0})
        agent.wait(10_000)
        agent.finished({ONE: second * 10 + 1})
    agent.ends({ONE: 100_000, TWO: 0})
    report = agent.report()
    assert (report.lag_ms or 0) >= 290_000
    assert report.stalled_since_ms is None


def test_lag_is_reported_per_data_topic() -> None:
    """Topics of boundaries have no backlog."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS, LEFT)
    agent.ends({ONE: 3, TWO: 0, at(LEFT, 0): 7})
    assert agent.report().inputs == ((CARS.topic, 3), (LEFT.topic, 7))
    assert agent.report().lag_records == 10


def test_unmeasured_lag_is_unknown(agent: Agent) -> None:
    """Before the first response about the ends, and while the lane does not run; never 0."""
    report = agent.report()
    assert (report.state, report.lag_records, report.lag_ms) == (LaneState.RUNNING, None, None)
    agent.ends({ONE: 10, TWO: 20})
    assert agent.report().lag_records == 30
    agent.stopped("boom")
    report = agent.report()
    assert (report.state, report.lag_records, report.lag_ms) == (LaneState.RESTARTING, None, None)
    assert report.inputs == ()


def test_lag_is_unknown_until_the_ends_of_every_input_are_read() -> None:
    """The sum over some of the inputs would be too small."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS, LEFT)
    agent.ends({ONE: 3, TWO: 0})
    assert agent.report().lag_records is None

"""What is reported of a fragment."""

from dataclasses import replace

import pytest

from pipeline.agent.status import ENDS_LOG_MAX
from pipeline.boundaries.held import HELD_LEAST_MS
from pipeline.boundaries.lane_time import ENDS_FRESH_MS, OPEN_LONG_MS
from pipeline.boundaries.profile import LaneProfile
from pipeline.catalog.records import LaneState
from pipeline.ids import Epoch, RunNumber
from pipeline.lanes.events import LaneRebuilding
from pipeline.network.boxes.shape import Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.planner.instants import instant
from tests.unit.agent.support import CARS, LANE, LEFT, SPEED, START_MS, Agent, at, wish

ONE, TWO = at(CARS, 0), at(CARS, 1)


@pytest.fixture
def agent() -> Agent:
    """An agent with a running lane over one external stream."""
    agent = Agent()
    agent.want(wish())
    agent.started(CARS)
    return agent


def test_a_report_names_the_life_of_its_node(agent: Agent) -> None:
    """By when the node was started."""
    report = agent.report()
    assert (report.node, report.life) == ("node1", START_MS)


def test_a_lane_at_the_ends_of_its_inputs_has_no_lag(agent: Agent) -> None:
    """Neither in records nor in time."""
    agent.ends({ONE: 10, TWO: 20})
    agent.finished({ONE: 10, TWO: 20})
    agent.wait(3_000)
    report = agent.report()
    assert (report.lag_records, report.lag_ms) == (0, 0)
    assert report.inputs == ((CARS.topic, 0),)


def test_lag_in_records_is_what_lies_between_finished_and_end(agent: Agent) -> None:
    """Summed over partitions; one that is ahead of an older answer does not count negative."""
    agent.finished({ONE: 4, TWO: 25})
    agent.ends({ONE: 10, TWO: 20})
    assert agent.report().lag_records == 6


def test_lag_in_time_counts_from_when_the_topic_ended_where_the_lane_is(agent: Agent) -> None:
    """The oldest unfinished record came after that."""
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


def test_a_steady_flow_has_a_small_lag_not_a_growing_one(agent: Agent) -> None:
    """A lane that always works on the newest batch never stands at the end, and is not behind."""
    for second in range(300):
        agent.ends({ONE: second * 100 + 100, TWO: 0})
        agent.wait(1_000)
        agent.finished({ONE: second * 100 + 100})
        agent.ends({ONE: second * 100 + 150, TWO: 0})
        assert (agent.report().lag_ms or 0) <= 1_000


def test_a_long_lag_is_known_within_a_bounded_memory(agent: Agent) -> None:
    """A lane that stands still for an hour shows an hour."""
    agent.ends({ONE: 0, TWO: 0})
    for step in range(1, 7_200):
        agent.wait(500)
        agent.ends({ONE: step, TWO: 0})
        assert len(agent.running().ends_log[CARS.stream]) <= ENDS_LOG_MAX
    assert agent.report().lag_ms == 7_199 * 500
    agent.finished({ONE: 7_190})
    assert (agent.report().lag_ms or 0) <= 5_000


def test_a_lane_that_is_behind_since_its_start_counts_from_its_last_batch_before() -> None:
    """What its last life had not read can have waited since then, however short this one is."""
    agent = Agent()
    agent.want(wish())
    agent.wait(60_000)
    agent.started(CARS)
    agent.ends({ONE: 1_000, TWO: 0})
    agent.wait(4_000)
    assert agent.report().lag_ms == 64_000


def test_lag_is_shown_per_topic_of_data() -> None:
    """Topics of boundaries and advances are nobody's backlog."""
    agent = Agent()
    agent.want(wish())
    agent.started(CARS, LEFT)
    agent.ends({ONE: 3, TWO: 0, at(LEFT, 0): 7})
    assert agent.report().inputs == ((CARS.topic, 3), (LEFT.topic, 7))
    assert agent.report().lag_records == 10


def test_a_lag_that_nobody_measures_is_unknown(agent: Agent) -> None:
    """Before the first answer about the ends, and while the lane does not run; never 0."""
    report = agent.report()
    assert (report.state, report.lag_records, report.lag_ms) == (LaneState.RUNNING, None, None)
    agent.ends({ONE: 10, TWO: 20})
    assert agent.report().lag_records == 30
    agent.stopped("boom")
    report = agent.report()
    assert (report.state, report.lag_records, report.lag_ms) == (LaneState.RESTARTING, None, None)
    assert report.inputs == ()


def test_the_lag_is_unknown_until_every_input_was_looked_at() -> None:
    """The sum over some of the inputs would be too small."""
    agent = Agent()
    agent.want(wish())
    agent.started(CARS, LEFT)
    agent.ends({ONE: 3, TWO: 0})
    assert agent.report().lag_records is None


def test_a_topic_that_does_not_answer_makes_the_lane_wait(agent: Agent) -> None:
    """The status says which; when it answers, the lane runs again."""
    agent.ends({ONE: 0, TWO: 0})
    assert agent.report().state is LaneState.RUNNING
    agent.wait(500)
    agent.ends({})
    report = agent.report()
    assert report.state is LaneState.WAITING
    assert report.last_error == f"cannot be reached: topic {CARS.topic}"
    assert (report.lag_records, report.lag_ms) == (None, None)
    agent.ends({ONE: 0, TWO: 0})
    agent.wait(ENDS_FRESH_MS + 1)
    assert agent.report().state is LaneState.WAITING


def test_a_lane_that_just_started_is_not_waiting_yet(agent: Agent) -> None:
    """Nobody has asked for the ends of its topics so far."""
    assert agent.report().state is LaneState.RUNNING
    agent.wait(ENDS_FRESH_MS + 1)
    assert agent.report().state is LaneState.WAITING


def test_a_rebuild_is_reported_with_how_far_it_is() -> None:
    """Since when, how much it has to read and has read; nothing of it when the lane runs."""
    agent = Agent()
    agent.want(wish())
    began = agent.now.wall_ms
    agent.hear(LaneRebuilding(LANE, RunNumber(1), Epoch(1), 1_000))
    agent.wait(3_000)
    agent.hear(LaneRebuilding(LANE, RunNumber(1), Epoch(1), 1_000, 400))
    report = agent.report()
    assert report.state is LaneState.REBUILDING
    assert report.rebuild_since_ms == began
    assert (report.rebuild_offsets, report.rebuild_read) == (1_000, 400)
    agent.started(CARS)
    report = agent.report()
    assert report.state is LaneState.RUNNING
    assert (report.rebuild_since_ms, report.rebuild_offsets) == (None, 0)


def test_counts_and_boundary_come_from_the_marker(agent: Agent) -> None:
    """So they survive every restart."""
    agent.finished({ONE: 1}, {ONE: 70_000}, boundary_ms=64_999)
    report = agent.report()
    assert (report.boundary_ms, report.batch_ms, report.epoch) == (64_999, 40, 1)
    assert (report.network, report.fragment) == (SPEED.network, SPEED.fragment)
    assert report.reported_at_ms == START_MS


def test_a_transaction_that_stays_open_is_named(agent: Agent) -> None:
    """Where, and since when; when it has ended, the lane runs by itself."""
    for _ in range(0, OPEN_LONG_MS, 500):
        assert agent.report().state is LaneState.RUNNING
        agent.ends({ONE: 0, TWO: 0}, opened=TWO)
        agent.wait(500)
    report = agent.report()
    assert report.state is LaneState.WAITING
    assert report.last_error == (
        f"open transaction: topic {CARS.topic}, partition 1, offset 0, since {instant(START_MS)}"
    )
    assert report.lag_records is None
    agent.ends({ONE: 0, TWO: 2})
    report = agent.report()
    assert (report.state, report.last_error, report.lag_records) == (LaneState.RUNNING, "", 2)


def test_an_open_transaction_in_a_derived_input_is_named_too(agent: Agent) -> None:
    """Boundaries name what it has written, so that they wait for its end as well."""
    agent.stopped(None)
    agent.tick(60_000)
    agent.started(LEFT, epoch=2)
    for _ in range(0, OPEN_LONG_MS, 500):
        agent.ends({at(LEFT, 0): 0, at(LEFT, 1): 0}, opened=at(LEFT, 0))
        agent.wait(500)
    assert agent.report().last_error.startswith(
        f"open transaction: topic {LEFT.topic}, partition 0"
    )


def test_the_input_that_holds_event_time_back_is_reported() -> None:
    """While the lane runs; a stream that never had a record by no amount."""
    agent = Agent()
    agent.want(wish())
    agent.started(CARS, LEFT)
    agent.finished({ONE: 3}, {ONE: 90_000, TWO: 90_000})
    agent.ends({ONE: 3, TWO: 0, at(LEFT, 0): 0})
    report = agent.report()
    assert (report.held_by, report.held_ms) == (LEFT.stream, None)
    assert report.held_since_ms == agent.now.wall_ms
    agent.stopped("boom")
    assert agent.report().held_by == ""


def test_a_window_that_waits_for_a_silent_input_is_reported() -> None:
    """Until it has come: a lane that keeps nothing waits for nothing."""
    agent = Agent()
    agent.want(wish())
    patient = replace(CARS, idle_after_ms=60_000)
    windows = LaneProfile((patient,), Windowed(TumblingWindow(60_000, 0)))
    agent.started(CARS, profile=windows)
    agent.finished({ONE: 3, TWO: 3}, {ONE: 90_000, TWO: 90_000})
    agent.ends({ONE: 3, TWO: 3})
    began = agent.now.wall_ms
    while agent.now.wall_ms < began + HELD_LEAST_MS:
        assert agent.report().held_by == ""
        agent.tick(1_000)
        agent.ends({ONE: 3, TWO: 3})
    agent.tick()
    report = agent.report()
    assert (report.held_by, report.held_ms) == (CARS.stream, 0)
    assert report.held_silent_since_ms == report.held_since_ms == began
    agent.finished({}, boundary_ms=200_000)
    agent.tick()
    assert agent.report().held_by == ""

"""Status report of a fragment."""

from dataclasses import replace

from pipeline.boundaries.ends import ENDS_FRESH_MS
from pipeline.boundaries.held import HELD_LEAST_MS
from pipeline.boundaries.open_transactions import OPEN_LONG_MS
from pipeline.boundaries.profile import LaneProfile
from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.catalog.fragment_status import LaneState
from pipeline.ids import Epoch, RunNumber
from pipeline.lanes.events import LaneRebuilding, LaneWaited
from pipeline.network.boxes.shape import Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.planner.instants import instant
from tests.unit.agent.support import CARS, LANE, LEFT, SPEED, START_MS, Agent, at, deployed

ONE, TWO = at(CARS, 0), at(CARS, 1)


def test_a_report_names_the_incarnation_of_its_node(agent: Agent) -> None:
    """By the time at which the node started."""
    report = agent.report()
    assert (report.node, report.life) == ("node1", START_MS)


def test_a_report_names_the_writers_of_derived_inputs_while_it_runs() -> None:
    """A reader of the report finds out whether they run."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS, LEFT)
    agent.ends({ONE: 3, TWO: 0, at(LEFT, 0): 7})
    assert agent.report().writers == (LEFT.writer,)
    agent.stopped("boom")
    assert agent.report().writers == ()


def test_the_usual_waits_of_a_lane_are_those_of_its_run() -> None:
    """A new one measures them anew."""
    agent, waits = Agent(), UsualWaits(5, 700, 900)
    agent.read_catalog(deployed())
    agent.started(CARS)
    agent.receive(LaneWaited(LANE, RunNumber(1), waits))
    assert agent.report().waits == waits
    agent.stopped("boom")
    assert agent.report().waits is None
    agent.tick(60_000)
    agent.started(CARS, epoch=2)
    agent.receive(LaneWaited(LANE, RunNumber(1), waits))
    assert agent.report().waits is None


def test_an_unreachable_topic_is_reported_as_waiting(agent: Agent) -> None:
    """The status names it; after a response the lane is running again."""
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


def test_a_partition_that_does_not_answer_is_reported_by_a_running_lane(agent: Agent) -> None:
    """Once it has not answered for some time; the others are read."""
    agent.ends({ONE: 0, TWO: 0})
    since = instant(agent.now.wall_ms)
    for _ in range(ENDS_FRESH_MS // 500):
        assert agent.report().unreachable == ""
        agent.ends({ONE: 0}, missing=TWO)
        agent.wait(500)
    agent.ends({ONE: 0}, missing=TWO)
    report = agent.report()
    expected = f"topic {CARS.topic}, partition 1, since {since}"
    assert (report.state, report.unreachable) == (LaneState.RUNNING, expected)
    agent.ends({ONE: 0, TWO: 0})
    assert agent.report().unreachable == ""


def test_a_lane_that_just_started_is_not_waiting_yet(agent: Agent) -> None:
    """The ends of its topics have not been requested yet."""
    assert agent.report().state is LaneState.RUNNING
    agent.wait(ENDS_FRESH_MS + 1)
    assert agent.report().state is LaneState.WAITING


def test_the_progress_of_a_rebuild_is_reported() -> None:
    """Start time, total and finished records; absent once the lane runs."""
    agent = Agent()
    agent.read_catalog(deployed())
    began = agent.now.wall_ms
    agent.receive(LaneRebuilding(LANE, RunNumber(1), Epoch(1), 1_000))
    agent.wait(3_000)
    agent.receive(LaneRebuilding(LANE, RunNumber(1), Epoch(1), 1_000, 400, 5, 2))
    report = agent.report()
    assert report.state is LaneState.REBUILDING
    assert report.rebuild_since_ms == began
    assert (report.rebuild_offsets, report.rebuild_read) == (1_000, 400)
    assert (report.rebuild_batches, report.rebuild_batches_done) == (5, 2)
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


def test_a_long_open_transaction_is_reported(agent: Agent) -> None:
    """With place and start; after its end the lane is running again."""
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


def test_an_open_transaction_in_a_derived_input_is_reported_too(agent: Agent) -> None:
    """Boundaries contain its offsets, so they wait for its end as well."""
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
    """While the lane runs; without an amount for a stream that never had a record."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(CARS, LEFT)
    agent.finished({ONE: 3}, {ONE: 90_000, TWO: 90_000})
    agent.ends({ONE: 3, TWO: 0, at(LEFT, 0): 0})
    report = agent.report()
    assert (report.held_by, report.held_ms) == (LEFT.stream, None)
    assert report.held_since_ms == agent.now.wall_ms
    agent.stopped("boom")
    assert agent.report().held_by == ""


def test_an_input_at_the_present_holds_nothing_back() -> None:
    """Another partition of it has a record of the future; one that is behind is, by less."""
    for behind_ms, expected in ((0, ("", None)), (20_000, (CARS.stream, 20_001))):
        agent = Agent()
        agent.read_catalog(deployed())
        agent.started(CARS)
        present_ms = agent.now.wall_ms
        progress = {ONE: present_ms - behind_ms, TWO: present_ms + 3_540_000}
        agent.finished({ONE: 3, TWO: 3}, progress)
        agent.ends({ONE: 4, TWO: 3})
        report = agent.report()
        assert (report.held_by, report.held_ms) == expected


def test_a_window_that_waits_for_an_idle_input_is_reported() -> None:
    """Until it is emitted; a lane without state waits for nothing."""
    agent = Agent()
    agent.read_catalog(deployed())
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


def test_a_window_that_only_the_clock_closes_is_reported_with_its_time() -> None:
    """Once all inputs have stepped aside; the same moment while the silence lasts."""
    agent = Agent()
    agent.read_catalog(deployed())
    patient = replace(CARS, idle_after_ms=20_000, lateness_ms=5_000)
    agent.started(CARS, profile=LaneProfile((patient,), Windowed(TumblingWindow(60_000, 0))))
    agent.finished({ONE: 3, TWO: 3}, {ONE: 90_000, TWO: 90_000})
    began_ms = agent.now.wall_ms
    for second in range(33):
        agent.ends({ONE: 3, TWO: 3})
        agent.tick(1_000)
        report = agent.report()
        if second < 19:
            assert report.settles_at_ms is None
        elif second > 21:
            assert report.held_by == ""
            expected_ms = began_ms + 120_000 - (90_000 - 5_001)
            assert abs((report.settles_at_ms or 0) - expected_ms) <= 1_500
    agent.finished({}, boundary_ms=200_000)
    agent.tick()
    assert agent.report().settles_at_ms is None


def test_event_time_that_nothing_waits_for_is_not_reported_as_catching_up(agent: Agent) -> None:
    """In a silence with nothing to release it moves rarely; while there is something, it is."""
    for idle, is_spent, expected in (
        (True, True, None),
        (True, False, 9_000),
        (False, True, 9_000),
    ):
        time = replace(agent.running().time, steps_ms=9_000, idle=idle, is_spent=is_spent)
        lane = replace(agent.lane(), phase=replace(agent.running(), time=time))
        agent.state = replace(agent.state, lanes={LANE: lane})
        assert agent.report().steps_ms == expected

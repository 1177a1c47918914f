"""Meters of lanes: threads, groups of jobs, records and bytes."""

import threading
import time
from dataclasses import replace

from pipeline.ids import FragmentId, FragmentName, Offset
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.metering.readings import Flow
from pipeline.spark.run.lane_meters import GROUPS_KEPT, LaneMeters
from tests.unit.agent.support import CARS, NETWORK, SPEED, fresh_marker

OTHER = FragmentId(NETWORK, FragmentName("volume"))


def spend(milliseconds: int) -> None:
    """Use processor time."""
    until_ns = time.thread_time_ns() + milliseconds * 1_000_000
    while time.thread_time_ns() < until_ns:
        pass


def at(offset: int, records_in: int, records_out: int = 0) -> CommitMarker:
    """A marker up to an offset of each partition."""
    first = fresh_marker(CARS)
    end = {one: Offset(offset) for one in first.end}
    return replace(first, end=end, totals=Totals(records_in, records_out))


def test_a_thread_notes_what_it_has_computed_since_it_did_last() -> None:
    """For the fragment that it names; a new thread begins at nothing."""
    meters = LaneMeters()

    def work(fragment: FragmentId) -> None:
        spend(20)
        meters.note(fragment)
        meters.note(fragment)

    for fragment in (SPEED, OTHER, SPEED):
        thread = threading.Thread(target=work, args=(fragment,))
        thread.start()
        thread.join()
    uses = meters.tasks({})
    assert 20_000_000 <= uses[OTHER].writing_ns < 35_000_000
    assert 40_000_000 <= uses[SPEED].writing_ns < 70_000_000


def test_records_and_bytes_are_those_since_the_start() -> None:
    """Bytes read are known once a size is; until then their records are kept."""
    meters = LaneMeters()
    meters.started(SPEED, at(100, 1_000, 50))
    meters.batch(SPEED, at(105, 1_010, 53), 70)
    assert meters.tasks({})[SPEED].flow == Flow(10, 3, 0, 70)
    meters.sized({CARS.topic: 20.0})
    meters.batch(SPEED, at(107, 1_014, 53), 0)
    assert meters.tasks({})[SPEED].flow == Flow(14, 3, 14 * 20, 70)
    meters.started(SPEED, at(300, 5_000, 90))
    meters.batch(SPEED, at(301, 5_002, 91), 5)
    assert meters.tasks({})[SPEED].flow == Flow(16, 4, 16 * 20, 75)


def test_positions_are_those_of_lanes_that_have_read_since_the_last_call() -> None:
    """The most advanced ones: what is before them is there most surely."""
    meters = LaneMeters()
    meters.batch(SPEED, at(7, 1), 0)
    meters.batch(OTHER, at(9, 1), 0)
    assert meters.take_positions() == {CARS.topic: {0: 9, 1: 9}}
    meters.batch(SPEED, at(8, 1), 0)
    assert meters.take_positions() == {CARS.topic: {0: 8, 1: 8}}
    assert meters.take_positions() == {}


def test_tasks_and_java_threads_are_added_to_the_fragment_of_their_group() -> None:
    """The last queries of a fragment are remembered, and no others."""
    meters = LaneMeters()
    for number in range(GROUPS_KEPT + 3):
        meters.java(SPEED, f"run-{number}", 10, uses_python=False)
    meters.java(OTHER, "other", 5, uses_python=True)
    groups = meters.groups
    assert len(groups) == GROUPS_KEPT + 1
    assert groups[f"run-{GROUPS_KEPT + 2}"] == SPEED
    assert "run-2" not in groups
    uses = meters.tasks({SPEED: 7})
    assert (uses[SPEED].planning_ns, uses[SPEED].tasks_ns) == (10 * (GROUPS_KEPT + 3), 7)
    assert (uses[OTHER].planning_ns, uses[OTHER].uses_python) == (5, True)

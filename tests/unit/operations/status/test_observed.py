from dataclasses import replace

from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import DesiredState, FragmentRecord
from pipeline.ids import (
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.operations.status.observed import (
    LOST,
    QUEUED,
    STOPPING,
    Around,
    Lag,
    failed,
    observe,
    settled,
)
from pipeline.priority import Priority
from tests.unit.catalog.support import NOTHING_READ, NOW, node

NET, MOVING = NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("moving")
RECORD = FragmentRecord(
    NET, MOVING, NetworkVersion(1), DesiredState.RUNNING, "1:d", (), None, (), None
)
STATUS = replace(
    NOTHING_READ,
    network=NET,
    lag_records=7,
    lag_ms=500,
    inputs=((TopicName("a"), 7),),
)
UP = node()
RUNNING = LaneState.RUNNING


def test_a_fragment_that_runs_has_its_lag() -> None:
    """By the report of its node, which is up."""
    (one,) = observe([RECORD], [STATUS], [UP])
    assert (one.name, one.state) == ("cars.moving", "running")
    assert one.lag == Lag(7, 500, {TopicName("a"): 7})
    assert one.behind_ms == 500
    assert settled([one])


def test_a_report_of_a_node_that_is_down_or_was_started_again_is_out_of_date() -> None:
    """Its numbers are not used."""
    for nodes in ([], [replace(UP, started_at_ms=Millis(NOW + 1))]):
        (one,) = observe([RECORD], [STATUS], nodes)
        assert (one.state, one.lag, one.behind_ms) == (LOST, Lag(), None)
        assert not settled([one])


def test_a_fragment_to_be_paused_is_stopping_until_it_is() -> None:
    """A node that is down runs no fragment."""
    paused = replace(RECORD, desired=DesiredState.PAUSED)
    at_rest = replace(STATUS, state=LaneState.STOPPED)
    states = [
        observe([paused], [status], nodes)[0].state
        for status, nodes in ((STATUS, [UP]), (at_rest, [UP]), (STATUS, []))
    ]
    assert states == [STOPPING, "paused", "paused"]
    assert settled(observe([paused], [STATUS], [UP]))


def test_a_fragment_without_report_is_pending() -> None:
    """Everything else is unknown."""
    (one,) = observe([RECORD], [], [UP])
    assert (one.state, one.lag, one.is_held, one.rebuilding_since_ms) == (
        "pending", Lag(), False, None,
    )  # fmt: skip


def test_results_wait_for_the_input_that_holds_event_time_back() -> None:
    """Also when all records are read; only while it is measured."""
    held = replace(STATUS, held_by="a", held_ms=9_000)
    (one,) = observe([RECORD], [held], [UP])
    assert (one.is_held, one.behind_ms) == (True, 9_000)
    (lost,) = observe([RECORD], [held], [])
    assert (lost.is_held, lost.behind_ms) == (False, None)


def chain(*states: LaneState, stalled: int | None = None) -> dict[str, tuple[str, ...]]:
    """What each fragment of a chain waits for; each one reads the one before it."""
    names = [FragmentName(f"f{number}") for number in range(len(states))]
    records = [replace(RECORD, fragment=name) for name in names]
    statuses = [
        replace(
            STATUS,
            fragment=name,
            state=state,
            writers=(f"local.cars.f{number - 1}",) if number and state is RUNNING else (),
            stalled_since_ms=NOW if number == stalled else None,
        )
        for number, (name, state) in enumerate(zip(names, states, strict=True))
    ]
    return {one.record.fragment: one.waits_for for one in observe(records, statuses, [UP])}


def test_a_running_fragment_waits_for_the_nearest_ones_above_that_do_not_run() -> None:
    """Through others that run; not for those above the nearest ones."""
    assert chain(RUNNING, RUNNING, RUNNING) == {"f0": (), "f1": (), "f2": ()}
    waiting = LaneState.WAITING
    assert chain(waiting, RUNNING, RUNNING) == {"f0": (), "f1": ("cars.f0",), "f2": ("cars.f0",)}
    assert chain(waiting, waiting, RUNNING) == {"f0": (), "f1": (), "f2": ("cars.f1",)}
    assert chain(RUNNING, RUNNING, stalled=0) == {"f0": (), "f1": ("cars.f0",)}
    assert chain(RUNNING, RUNNING, RUNNING, stalled=1) == {"f0": (), "f1": (), "f2": ("cars.f1",)}


def test_a_running_fragment_waits_for_one_whose_event_time_is_held_back() -> None:
    """By a silent input, or a partition; not by an input that may be behind by its lateness."""
    names = [FragmentName("one"), FragmentName("two")]
    for held_ms, silent_ms, partition, found in (
        (None, None, None, True),
        (9_000, NOW, None, True),
        (9_000, None, 1, True),
        (9_000, None, None, False),
        (0, NOW, None, True),
    ):
        first = replace(
            STATUS,
            fragment=names[0],
            held_by="a",
            held_ms=held_ms,
            held_silent_since_ms=silent_ms,
            held_partition=partition,
        )
        second = replace(STATUS, fragment=names[1], writers=("local.cars.one",))
        records = [replace(RECORD, fragment=name) for name in names]
        expected = ("cars.one",) if found else ()
        assert [one.waits_for for one in observe(records, [first, second], [UP])] == [(), expected]


def test_a_running_fragment_waits_for_one_whose_windows_only_the_clock_closes() -> None:
    """Its own inputs are silent, and results of it are still to come."""
    names = [FragmentName("one"), FragmentName("two")]
    records = [replace(RECORD, fragment=name) for name in names]
    first = replace(STATUS, fragment=names[0], settles_at_ms=NOW)
    second = replace(STATUS, fragment=names[1], writers=("local.cars.one",))
    assert [one.waits_for for one in observe(records, [first, second], [UP])] == [
        (), ("cars.one",)
    ]  # fmt: skip


def test_a_running_fragment_waits_for_one_that_is_behind() -> None:
    """Whose records are unread, or whose event time advances in steps; a batch takes a while."""
    names = [FragmentName("one"), FragmentName("two")]
    records = [replace(RECORD, fragment=name) for name in names]
    second = replace(STATUS, fragment=names[1], lag_ms=0, writers=("local.cars.one",))
    for lag_ms, steps_ms, found in (
        (9_999, None, ()),
        (10_000, None, ("cars.one",)),
        (0, 12_000, ("cars.one",)),
    ):
        first = replace(STATUS, fragment=names[0], lag_ms=lag_ms, steps_ms=steps_ms)
        assert [one.waits_for for one in observe(records, [first, second], [UP])] == [(), found]


def test_short_delays_of_the_fragments_of_a_chain_add_up() -> None:
    """With the fragment's own; those above it that have one are named."""
    names = [FragmentName(f"f{number}") for number in range(4)]
    records = [replace(RECORD, fragment=name) for name in names]
    for lags_ms, pace_ms, found in (
        ((5_000, 0, 4_999, 0), 0, ()),
        ((5_000, 0, 5_000, 0), 0, ("cars.f0", "cars.f2")),
        ((5_000, 0, 5_000, 0), 1, ()),
        ((0, 0, 4_000, 6_000), 0, ("cars.f2",)),
        ((0, 0, 0, 9_999), 0, ()),
    ):
        statuses = [
            replace(
                STATUS,
                fragment=name,
                lag_ms=lag_ms,
                pace_ms=pace_ms if lag_ms else 0,
                writers=(f"local.cars.f{number - 1}",) if number else (),
            )
            for number, (name, lag_ms) in enumerate(zip(names, lags_ms, strict=True))
        ]
        assert observe(records, statuses, [UP])[3].waits_for == found


def test_the_pace_of_a_fragment_is_no_delay() -> None:
    """Its records are unread for so long in any case."""
    slow = replace(STATUS, lag_ms=40_000, pace_ms=31_000)
    for status, expected in ((slow, None), (replace(slow, pace_ms=30_000), 40_000)):
        (one,) = observe([RECORD], [status], [UP])
        assert one.unread_ms == expected


def test_fragments_of_other_networks_and_circles_end_the_search() -> None:
    """Two networks may read each other; only observed fragments are named."""
    one = replace(RECORD, fragment=FragmentName("one"))
    two = replace(RECORD, fragment=FragmentName("two"))
    statuses = [
        replace(STATUS, fragment=one.fragment, writers=("local.cars.two", "local.roads.x")),
        replace(STATUS, fragment=two.fragment, writers=("local.cars.one",)),
    ]
    assert [seen.waits_for for seen in observe([one, two], statuses, [UP])] == [(), ()]


def test_a_stall_is_one_of_a_fragment_that_runs() -> None:
    """By the report of a node that is up."""
    stalled = replace(STATUS, stalled_since_ms=NOW)
    (one,) = observe([RECORD], [stalled], [UP])
    assert one.stalled_since_ms == NOW
    (lost,) = observe([RECORD], [stalled], [])
    assert lost.stalled_since_ms is None


def test_a_rebuild_is_under_way_in_its_state_only() -> None:
    """The last report of one that is over may still have its beginning."""
    rebuilt = replace(STATUS, rebuild_since_ms=Millis(1_500))
    (over,) = observe([RECORD], [rebuilt], [UP])
    (begun,) = observe([RECORD], [replace(rebuilt, state=LaneState.REBUILDING)], [UP])
    assert (over.rebuilding_since_ms, begun.rebuilding_since_ms) == (None, 1_500)


def test_failed_fragments_are_those_that_do_not_start_again() -> None:
    """One that restarts has not failed."""
    for state, count in ((LaneState.FAILED, 1), (LaneState.RESTARTING, 0)):
        assert len(failed(observe([RECORD], [replace(STATUS, state=state)], [UP]))) == count


def test_a_fragment_that_no_node_may_run_is_named_with_the_labels() -> None:
    """Until one is up; one that runs, or is not to run, waits for none."""
    placed = replace(RECORD, nodes="zone=b")
    other = replace(UP, node=NodeId("b"), labels=(("zone", "b"),))
    for record, status, nodes, found in (
        (placed, None, [UP], "no node that is up has zone=b"),
        (placed, None, [UP, other], ""),
        (placed, replace(STATUS, state=LaneState.PENDING), [UP], "no node that is up has zone=b"),
        (placed, STATUS, [UP], ""),
        (placed, STATUS, [], "no node is up"),
        (RECORD, None, [], "no node is up"),
        (replace(placed, desired=DesiredState.PAUSED), None, [UP], ""),
    ):
        (one,) = observe([record], [status] if status else [], nodes)
        assert one.unplaced == found


def test_a_fragment_that_no_node_has_room_for_is_queued() -> None:
    """With its priority; before its owner has released it, it runs, and the wait goes on."""
    name, low = FragmentId(NET, MOVING), replace(RECORD, priority=Priority.LOW)
    pending = replace(STATUS, state=LaneState.PENDING)
    for statuses, nodes in (([], [UP]), ([pending], [UP]), ([STATUS], [replace(UP, pid=2)])):
        there = [replace(one, started_at_ms=Millis(NOW + 1)) for one in nodes]
        live = there if nodes[0].pid == 2 else nodes
        (one,) = observe([low], statuses, live, Around(queued={name}))
        assert (one.state, one.unplaced) == (QUEUED, "no node has room (priority low)")
        assert settled([one])
    (running,) = observe([low], [STATUS], [UP], Around(queued={name}))
    assert (running.state, running.unplaced) == ("running", "")
    assert not settled([running])
    paused = replace(low, desired=DesiredState.PAUSED)
    assert observe([paused], [pending], [UP], Around())[0].state == "paused"

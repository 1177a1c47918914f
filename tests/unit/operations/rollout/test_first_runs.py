from dataclasses import replace

from pipeline.catalog.fragment_status import LaneState
from pipeline.catalog.records import DesiredState, FragmentRecord
from pipeline.ids import Epoch, FragmentName, NetworkId, NetworkName, NetworkVersion, ParticipantId
from pipeline.operations.rollout.first_runs import (
    STEADY_AFTER_S,
    FirstRuns,
    StartedFragments,
    started_fragments,
)
from pipeline.operations.status.observed import ObservedFragment
from tests.unit.catalog.support import NOTHING_READ

NET, MOVING = NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("moving")
RECORD = FragmentRecord(
    NET, MOVING, NetworkVersion(1), DesiredState.RUNNING, "1:d", (), None, (), None
)
STARTED = FirstRuns(frozenset({MOVING}))


def _seen(state: LaneState, read: int, lag: int | None) -> tuple[ObservedFragment]:
    status = replace(NOTHING_READ, network=NET, state=state, records_in=read, lag_records=lag)
    return (ObservedFragment(RECORD, status, node_up=True),)


def test_it_is_steady_after_a_batch() -> None:
    """Not before it, at any lag."""
    seen = _seen(LaneState.RUNNING, 7, lag=3)
    runs = STARTED.after(seen, 1.0)
    assert not runs.steady(seen, 1.0)
    later = _seen(LaneState.RUNNING, 8, lag=9)
    assert runs.after(later, 2.0).steady(later, 2.0)


def test_it_is_steady_with_nothing_to_read() -> None:
    """Only if the lag is known."""
    unknown, nothing = (_seen(LaneState.RUNNING, 0, lag) for lag in (None, 0))
    runs = STARTED.after(unknown, 1.0)
    assert not runs.steady(unknown, 1.0)
    assert runs.after(nothing, 2.0).steady(nothing, 2.0)


def test_it_is_steady_when_it_has_run_long_enough() -> None:
    """A first batch may take minutes."""
    seen = _seen(LaneState.RUNNING, 0, lag=3)
    runs = STARTED.after(seen, 1.0)
    assert not runs.steady(seen, 0.9 + STEADY_AFTER_S)
    assert runs.after(seen, 5.0).steady(seen, 1.0 + STEADY_AFTER_S)


def test_an_interrupted_run_counts_from_its_next_start() -> None:
    """A fragment that fails at each start is never steady."""
    seen, broken = _seen(LaneState.RUNNING, 0, lag=3), _seen(LaneState.RESTARTING, 0, lag=3)
    runs = STARTED.after(seen, 1.0).after(broken, 5.0).after(seen, 8.0)
    assert not runs.steady(seen, 1.0 + STEADY_AFTER_S)
    assert runs.steady(seen, 8.0 + STEADY_AFTER_S)


def test_fragments_that_were_not_started_need_not_be_steady() -> None:
    """They may have been behind for days."""
    seen = _seen(LaneState.RUNNING, 0, lag=3)
    assert FirstRuns(frozenset()).after(seen, 1.0).steady(seen, 1.0)


def test_a_deploy_starts_what_it_adds_and_what_it_changes() -> None:
    """For these, earlier reports are of the previous plan; for unchanged ones they are not."""
    other = replace(RECORD, fragment=FragmentName("stopped"))
    changed = replace(RECORD, version=NetworkVersion(2))
    reports = [
        replace(NOTHING_READ, network=NET, fragment=name, epoch=Epoch(4))
        for name in (MOVING, other.fragment)
    ]
    assert started_fragments([RECORD, other], [changed, other], reports) == StartedFragments(
        frozenset({MOVING}), {MOVING: Epoch(4)}
    )
    placed = replace(other, nodes="zone=a", apart=(MOVING,), cost_us=7)
    assert started_fragments([other], [placed], []) == StartedFragments(frozenset(), {})
    assert started_fragments([], [other], []) == StartedFragments(frozenset({other.fragment}), {})

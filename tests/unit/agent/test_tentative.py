"""Tentative results of a run, from the first until all are settled."""

from pipeline.agent.tentative import TentativeRun, with_state
from pipeline.ids import SteadyMillis
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.lanes.tentative_state import TentativeCounts, TentativeState

OPEN, DONE = TentativeCounts(3, 1, open_results=2), TentativeCounts(3, 3)


def _state(
    phase: ForkPhase, since_ms: int, counts: TentativeCounts, *, is_settled: bool = False
) -> TentativeState:
    return TentativeState(phase, SteadyMillis(since_ms), counts=counts, is_settled=is_settled)


def test_it_is_over_when_no_fork_publishes_and_all_is_settled() -> None:
    """Done marks are a part of it: open results alone do not decide."""
    run = with_state(None, _state(ForkPhase.PUBLISHING, 5, OPEN))
    assert (run.began_ms, run.ended_ms, run.is_over) == (5, None, False)
    run = with_state(run, _state(ForkPhase.PUBLISHING, 5, DONE, is_settled=True))
    assert not run.is_over
    run = with_state(run, _state(ForkPhase.ABSENT, 9, DONE))
    assert (run.began_ms, run.ended_ms, run.is_over) == (5, 9, False)
    run = with_state(run, _state(ForkPhase.ABSENT, 9, DONE, is_settled=True))
    assert run.is_over
    assert run.became == DONE
    assert not run.ended().is_over
    assert run.ended() == TentativeRun(run.state, DONE)


def test_a_fork_that_publishes_again_continues_it() -> None:
    """As long as not all is settled."""
    run = with_state(None, _state(ForkPhase.PUBLISHING, 5, OPEN))
    run = with_state(run, _state(ForkPhase.RESTING, 9, OPEN))
    run = with_state(run, _state(ForkPhase.ABSENT, 11, OPEN))
    assert (run.began_ms, run.ended_ms) == (5, 9)
    run = with_state(run, _state(ForkPhase.PUBLISHING, 20, OPEN))
    assert (run.began_ms, run.ended_ms) == (5, None)

import pytest

from connectors.running.loop import FAILURES_MAX, POLL_S, Total, run
from connectors.running.pace import Passed
from pipeline.errors import FencedError, MedusaError, UnavailableError
from tests.unit.connectors.twins import TickingClock


class Scripted:
    """Does what it is told: a number of records, or an error."""

    def __init__(self, *script: int | MedusaError) -> None:
        self.script = list(script)
        self.starts = 0
        self.closed = False

    def start(self) -> None:
        """Begin."""
        self.starts += 1

    def step(self) -> Passed:
        """The next one; at the end nothing comes."""
        found = self.script.pop(0) if self.script else 0
        if isinstance(found, MedusaError):
            raise found
        return Passed(records=found)

    def close(self) -> None:
        """End."""
        self.closed = True


def away() -> UnavailableError:
    """An error that another try may mend."""
    return UnavailableError("no answer", place="there")


def test_it_ends_when_nothing_comes_if_that_is_wanted() -> None:
    """And begins again after a failure."""
    runner, notes = Scripted(3, away(), 4), list[str]()
    clock = TickingClock()

    def note(total: Total, error: MedusaError | None) -> None:
        notes.append(f"{total.records} {error.message if error else ''}".strip())

    total = run(runner, clock, lambda: False, note, until_end=True)
    assert (total.records, runner.starts, runner.closed) == (7, 2, True)
    assert notes == ["3", "3 no answer", "7"]


def test_it_waits_for_more_until_it_is_stopped() -> None:
    """Without spinning."""
    clock = TickingClock()
    runner = Scripted(1)
    run(runner, clock, lambda: clock.passed_s >= 5, lambda *_: None, until_end=False)
    assert 5 <= clock.passed_s < 5 + 2 * POLL_S


def test_failures_in_a_row_are_bounded_and_successes_reset_them() -> None:
    """With longer and longer pauses."""
    clock = TickingClock()
    fine = Scripted(*[away()] * FAILURES_MAX, 1, *[away()] * FAILURES_MAX, 1)
    run(fine, clock, lambda: False, lambda *_: None, until_end=True)
    hopeless = Scripted(*[away()] * (FAILURES_MAX + 1))
    with pytest.raises(UnavailableError):
        run(hopeless, clock, lambda: False, lambda *_: None, until_end=True)
    assert hopeless.closed


def test_another_error_ends_it() -> None:
    """A newer run has taken over."""
    runner = Scripted(FencedError("taken over", place="x"))
    with pytest.raises(FencedError):
        run(runner, TickingClock(), lambda: False, lambda *_: None, until_end=False)
    assert runner.closed

"""Runs a connector until it is stopped: rounds, pauses, and starts after failures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from connectors.running.pace import Passed
from pipeline.clock import Clock
from pipeline.errors import MedusaError, RetryError, UnavailableError

POLL_S = 0.5
"""How long to wait when nothing came."""
BACK_OFF_MAX_S = 30.0
FAILURES_MAX = 10
"""So many starts in a row may fail; one more, and the run ends with the error."""


class Runner(Protocol):
    """What runs: `connectors/running/source_runner.py`, or that of a sink."""

    def start(self) -> None:
        """Begin, or begin again after a failure."""

    def step(self) -> Passed:
        """Do one round."""

    def close(self) -> None:
        """End."""


@dataclass(slots=True)
class Total:
    """What a run has moved."""

    records: int = 0
    refused: int = 0

    def add(self, passed: Passed) -> None:
        """Count a round."""
        self.records += passed.records
        self.refused += passed.refused


def run(
    runner: Runner,
    clock: Clock,
    stopped: Callable[[], bool],
    note: Callable[[Total, MedusaError | None], None],
    *,
    until_end: bool,
) -> Total:
    """Run until it is stopped, or until there is nothing more.

    Args:
        runner: is closed at the end.
        clock: of pauses.
        stopped: asked between rounds, and at least every `POLL_S`.
        note: is told the total after each round that moved something, and each failure.
        until_end: whether to end when nothing comes.

    Raises:
        MedusaError: an error that no other try mends, or `FAILURES_MAX` were in vain.
    """
    total, failures, started = Total(), 0, False
    try:
        while not stopped():
            try:
                if not started:
                    runner.start()
                    started = True
                passed = runner.step()
            except (RetryError, UnavailableError) as error:
                started, failures = False, failures + 1
                if failures > FAILURES_MAX:
                    raise
                note(total, error)
                _wait(min(BACK_OFF_MAX_S, 0.5 * 2**failures), clock, stopped)
                continue
            failures = 0
            total.add(passed)
            if passed.records or passed.refused:
                note(total, None)
            elif until_end and not passed.more:
                break
            else:
                _wait(POLL_S, clock, stopped)
    finally:
        runner.close()
    return total


def _wait(seconds: float, clock: Clock, stopped: Callable[[], bool]) -> None:
    until_s = clock.monotonic_s() + seconds
    while not stopped() and (left_s := until_s - clock.monotonic_s()) > 0:
        clock.sleep(min(left_s, POLL_S))

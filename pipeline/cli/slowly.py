"""Delayed progress: only operations that take longer than two seconds report any."""

from brokers.embedded.progress import Step
from pipeline.cli.output import Printer
from pipeline.cli.progress import StepPrinter
from pipeline.clock import Clock

_QUIET_S = 2.0


class SlowProgress:
    """Progress printer: silent for two seconds, then one line per tenth of each step."""

    def __init__(self, printer: Printer, clock: Clock) -> None:
        self._print = StepPrinter(printer)
        self._clock = clock
        self._began_s = clock.monotonic_s()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Print `done` of `total` of a step, after the delay."""
        if self._clock.monotonic_s() - self._began_s >= _QUIET_S:
            self._print(Step(what, done, total))

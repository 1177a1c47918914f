"""Tells how far long work is, once it turns out to be long."""

from brokers.embedded.progress import Step
from pipeline.cli.output import Printer
from pipeline.cli.progress import StepPrinter
from pipeline.clock import Clock

_QUIET_S = 2.0


class SlowProgress:
    """Says nothing for two seconds, then a line on stderr for every tenth of each piece of work."""

    def __init__(self, printer: Printer, clock: Clock) -> None:
        self._tell = StepPrinter(printer)
        self._clock = clock
        self._began_s = clock.monotonic_s()

    def __call__(self, what: str, done: int, total: int) -> None:
        """So much of it is done."""
        if self._clock.monotonic_s() - self._began_s >= _QUIET_S:
            self._tell(Step(what, done, total))

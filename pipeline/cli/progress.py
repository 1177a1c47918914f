"""Progress of slow operations: a line per step, and a line per tenth of a step with a total."""

from brokers.embedded.progress import Step
from pipeline.cli.output import Printer

_PARTS = 10


class StepPrinter:
    """`Progress` that prints on stderr."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._last = ""

    def __call__(self, step: Step) -> None:
        """Print a step, unless it equals the last one."""
        text = words(step)
        if text != self._last:
            self._last = text
            self._printer.note(text)


def words(step: Step) -> str:
    """Text of a step; its percentage is rounded down to tenths of the total.

    >>> words(Step("fetching jars", 17, 57)), words(Step("starting"))
    ('fetching jars: 20 %', 'starting')
    """
    if not step.total:
        return step.what
    tenths = _PARTS * min(step.done, step.total) // step.total
    return f"{step.what}: {tenths * 100 // _PARTS} %"

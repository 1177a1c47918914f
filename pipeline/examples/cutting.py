"""The cut of an example's input: begins and ends it, and follows its tentative results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pipeline.clock import Clock, Deadline
from pipeline.examples.cut import Cut, CutKind, CutReport, Outcome, Tally
from pipeline.examples.example import Bounded
from pipeline.examples.lines import Line
from pipeline.examples.run import Screen, Then
from pipeline.ids import Millis

DONE_WITHIN_S = 60.0
"""Time for the last done mark after all stable results were read."""
_POLL_S = 0.2


class Reading(Protocol):
    """A reader of results, which reports to a tally."""

    def poll(self, timeout_s: float) -> int:
        """Report what is there."""


@dataclass(frozen=True, slots=True)
class Cutting:
    """The cut of one run.

    Args:
        cut: what is cut, and for how long.
        bounded: the variant of the example.
        line: what it closes.
        tally: of the tentative results.
        reading: reads the output for the tally.
        screen: display of progress.
        clock: for times of the report.
    """

    cut: Cut
    bounded: Bounded
    line: Line
    tally: Tally
    reading: Reading
    screen: Screen
    clock: Clock

    def then(self, seconds: float) -> tuple[Then, ...]:
        """What is done during a feed that lasts so long."""
        begin, end = self.cut.shares(seconds)
        if self.cut.kind is CutKind.BROKER:
            return ((begin, self._without_broker),)
        return (begin, self._begin), (end, self._end)

    def poll(self) -> None:
        """Read new results."""
        while self.reading.poll(0.0):
            pass

    def counts(self) -> str:
        """The numbers so far, in words."""
        return ", ".join(
            f"{self.tally.count(one):,} {one.value}"
            for one in (
                Outcome.TENTATIVE,
                Outcome.CONFIRMED,
                Outcome.REPLACED,
                Outcome.UNDONE,
            )
        )

    def end(self, until_ms: Millis, check: Callable[[], None]) -> CutReport | None:
        """Wait until all is settled up to an event time, or not in time; the report.

        Args:
            until_ms: the event time.
            check: raises if a required process has ended.

        Returns:
            None: there was no cut.
        """
        self.screen.step("waiting for the done mark of the tentative results")
        deadline = Deadline.after(self.clock, DONE_WITHIN_S, "the done mark")
        while True:
            self.poll()
            if self.tally.settled(until_ms) or deadline.passed:
                break
            check()
            self.clock.sleep(_POLL_S)
        bounded = self.bounded
        return self.tally.report(self.cut, bounded.result.name, bounded.bound_ms, until_ms)

    def _begin(self) -> None:
        self.screen.step(f"cutting the {self.cut.kind.value} for {self.cut.seconds:g} s")
        self.line.cut()
        self.tally.cut_ms = self.clock.now_ms()

    def _end(self) -> None:
        self.screen.step("healing: what was kept back comes")
        self.tally.healed_ms = self.clock.now_ms()
        self.line.heal()

    def _without_broker(self) -> None:
        """Begin, and end it as well: meanwhile there is nothing to ask for, and to show."""
        self._begin()
        self.clock.sleep(self.cut.seconds)
        self._end()

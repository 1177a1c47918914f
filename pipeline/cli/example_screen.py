"""Where a run shows what happens: a screen that is drawn anew, or lines where there is none."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pipeline.cli.output import Printer
from pipeline.examples.view import View, as_lines

_EVERY_LOOKS = 5
"""Without a terminal: how many looks make a line."""


class PlainScreen:
    """One line for each step, and one now and then while the network runs."""

    def __init__(self, printer: Printer, label: str) -> None:
        self._printer = printer
        self._label = label
        self._looks = 0
        self._graph_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to give back."""

    def step(self, text: str) -> None:
        """A line for a step."""
        self._printer.note(f"[{self._label}] {text}")

    def show(self, view: View) -> None:
        """The graph once; then the state in a line or two, not at every look."""
        if not self._graph_shown:
            self._graph_shown = True
            self._printer.note(view.graph.rstrip("\n"))
        if self._looks % _EVERY_LOOKS == 0:
            self._printer.note(f"[{self._label}] {view.headline}")
            for line in (*view.newest[-1:], *view.troubles):
                self._printer.note(f"[{self._label}]   {line}")
        self._looks += 1


class LiveScreen:
    """The graph once, then what changes, drawn in place below it; steps are lines above."""

    def __init__(self, printer: Printer, label: str) -> None:
        self._printer = printer
        self._label = label
        self._live = Live(
            console=Console(stderr=True, highlight=False),
            auto_refresh=False,
            vertical_overflow="crop",
        )
        self._drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last view on the screen."""
        if self._drawn:
            self._live.stop()

    def step(self, text: str) -> None:
        """A line above the view."""
        if self._drawn:
            self._live.console.print(f"[{self._label}] {text}", markup=False)
        else:
            self._printer.note(f"[{self._label}] {text}")

    def show(self, view: View) -> None:
        """Draw the view."""
        if not self._drawn:
            self._drawn = True
            self._printer.note(f"\n{view.graph}")
            self._live.start()
        lines = Text("\n".join(as_lines(view)), no_wrap=True, overflow="ellipsis")
        self._live.update(lines, refresh=True)


def screen_for(printer: Printer, label: str, *, terminal: bool) -> PlainScreen | LiveScreen:
    """The screen that fits where stderr goes; the label stands before each line."""
    return LiveScreen(printer, label) if terminal else PlainScreen(printer, label)

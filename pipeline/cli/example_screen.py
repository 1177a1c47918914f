"""Progress display of an example's run: redrawn in place on a terminal, lines elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pipeline.cli.output import Printer
from pipeline.examples.view import View, as_lines

_UPDATES_PER_LINE = 5
"""Without a terminal only every fifth view is printed."""


class PlainScreen:
    """Display without a terminal: a line for each step, and some for every fifth view."""

    def __init__(self, printer: Printer, label: str) -> None:
        self._printer = printer
        self._label = label
        self._updates = 0
        self._graph_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """No resources to release."""

    def step(self, text: str) -> None:
        """Print a step."""
        self._printer.note(f"[{self._label}] {text}")

    def show(self, view: View) -> None:
        """Print the graph once, and every fifth view in a few lines."""
        if not self._graph_shown:
            self._graph_shown = True
            self._printer.note(view.graph.rstrip("\n"))
        if self._updates % _UPDATES_PER_LINE == 0:
            self._printer.note(f"[{self._label}] {view.headline}")
            for line in (*view.newest[-1:], *view.troubles):
                self._printer.note(f"[{self._label}]   {line}")
        self._updates += 1


class LiveScreen:
    """Display on a terminal: steps, the graph once, and below it the view, redrawn in place."""

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
        """Print a step above the view."""
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
    """The display for stderr; the label begins each line."""
    return LiveScreen(printer, label) if terminal else PlainScreen(printer, label)

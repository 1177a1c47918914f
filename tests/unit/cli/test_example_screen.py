import io

from pipeline.cli.example_screen import LiveScreen, PlainScreen, screen_for
from pipeline.cli.output import Format, Printer
from pipeline.examples.view import View


def view(headline: str, *, troubles: tuple[str, ...] = ()) -> View:
    """A view with one result."""
    return View(headline, "[car-sightings] -> moving\n", (), ("car-1 pays 2.0",), troubles)


def test_without_a_terminal_lines_are_printed_and_the_graph_once() -> None:
    """Steps and every fifth view go to stderr, so that stdout contains only the verdict."""
    out, err = io.StringIO(), io.StringIO()
    printer = Printer(Format.TABLE, color=False, out=out, err=err)
    with PlainScreen(printer, "demo") as screen:
        screen.step("starting")
        for second in range(6):
            screen.show(view(f"second {second}", troubles=("moving is waiting",)))
    assert out.getvalue() == ""
    assert err.getvalue().splitlines() == [
        "[demo] starting",
        "[car-sightings] -> moving",
        "[demo] second 0",
        "[demo]   car-1 pays 2.0",
        "[demo]   moving is waiting",
        "[demo] second 5",
        "[demo]   car-1 pays 2.0",
        "[demo]   moving is waiting",
    ]


def test_only_a_terminal_is_redrawn() -> None:
    """Other outputs get lines."""
    printer = Printer(Format.TABLE, color=False, out=io.StringIO(), err=io.StringIO())
    assert isinstance(screen_for(printer, "demo", terminal=False), PlainScreen)
    assert isinstance(screen_for(printer, "demo", terminal=True), LiveScreen)

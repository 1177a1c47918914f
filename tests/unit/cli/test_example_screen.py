import io

from pipeline.cli.example_screen import LiveScreen, PlainScreen, screen_for
from pipeline.cli.output import Format, Printer
from pipeline.examples.view import View


def view(headline: str, *, troubles: tuple[str, ...] = ()) -> View:
    """A view with one result."""
    return View(headline, "[car-sightings] -> moving\n", (), ("car-1 pays 2.0",), troubles)


def test_without_a_terminal_there_are_lines_and_the_graph_once() -> None:
    """Steps and every fifth look are lines on stderr; stdout stays free for the verdict."""
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


def test_the_screen_fits_where_stderr_goes() -> None:
    """Drawing in place is for terminals only."""
    printer = Printer(Format.TABLE, color=False, out=io.StringIO(), err=io.StringIO())
    assert isinstance(screen_for(printer, "demo", terminal=False), PlainScreen)
    assert isinstance(screen_for(printer, "demo", terminal=True), LiveScreen)

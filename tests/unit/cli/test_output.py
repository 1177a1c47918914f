import io
import json

import pytest
import yaml
from rich.text import Text

from pipeline.cli.colour import marked
from pipeline.cli.output import Format, Printer
from pipeline.cli.table import Table
from tests.unit.cli.twins import Screen

TABLE = Table(
    ("fragment", "state", "node", "error"),
    (("cars.moving", "failed", "n1", "it could not be read"), ("cars.failed", "running", "n1", "")),
    spare=("node",),
    below="error",
    styles={("state", "failed"): "bold red"},
)
DATA = {"fragments": ["cars.moving"]}


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """One with colours, 40 columns wide."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    return Screen()


def test_a_narrow_terminal_gets_what_it_has_room_for(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error below its row, and a word about columns that are missing."""
    Printer(Format.TABLE, color=False, out=screen).show(DATA, TABLE)
    lines = screen.plain.splitlines()
    assert lines == [
        "FRAGMENT     STATE    NODE",
        "cars.moving  failed   n1",
        "  it could not be read",
        "cars.failed  running  n1",
    ]
    monkeypatch.setenv("COLUMNS", "22")
    smaller = Screen()
    Printer(Format.TABLE, color=False, out=smaller).show(DATA, TABLE)
    assert smaller.plain.splitlines()[-1] == "no room for: node"
    assert all(len(line) <= 22 for line in smaller.plain.splitlines())


def test_a_wide_terminal_and_a_pipe_get_all_columns(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row in one line."""
    pipe = io.StringIO()
    Printer(Format.TABLE, out=pipe).show(DATA, TABLE)
    assert pipe.getvalue().splitlines() == [
        "FRAGMENT     STATE    NODE  ERROR",
        "cars.moving  failed   n1    it could not be read",
        "cars.failed  running  n1",
    ]
    monkeypatch.setenv("COLUMNS", "80")
    Printer(Format.TABLE, color=False, out=screen).show(DATA, TABLE)
    assert screen.plain == pipe.getvalue()


def test_a_word_has_its_colour_in_its_column_on_a_terminal_only(screen: Screen) -> None:
    """And only if colour is wanted; another column may hold the same word."""
    table = Table(TABLE.columns, (("failed", "failed", "n1", ""),), styles=TABLE.styles)
    Printer(Format.TABLE, out=screen).show(DATA, table)
    assert screen.getvalue().count("\x1b[1;31mfailed") == 1
    for output, color in ((Screen(), False), (io.StringIO(), True)):
        Printer(Format.TABLE, color=color, out=output).show(DATA, table)
        assert "31m" not in output.getvalue()


def test_marked_lines_have_their_colours_on_a_terminal_only(screen: Screen) -> None:
    """And are never folded there: they are to be copied."""
    text = marked(f"network x\n  + new  {'y' * 60}\n  ~ other\n  - gone\nwarning: w\n    + detail")
    Printer(Format.TABLE, out=screen).show(DATA, text)
    lines = screen.getvalue().splitlines()
    assert [line[:5] for line in lines[1:5]] == ["\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[33m"]
    assert (lines[0], lines[5]) == ("network x", "    + detail")
    plain = Screen()
    Printer(Format.TABLE, color=False, out=plain).show(DATA, text)
    pipe = io.StringIO()
    Printer(Format.TABLE, out=pipe).show(DATA, text)
    assert plain.getvalue() == pipe.getvalue() == f"{text.plain}\n"


def test_data_have_no_colour(screen: Screen) -> None:
    """Nor are they cut."""
    Printer(Format.JSON, out=screen).show(DATA, TABLE)
    assert json.loads(screen.getvalue()) == {"schema_version": 1, **DATA}


def test_lines_stay_lines_in_yaml() -> None:
    """Where YAML can write them so; what is read is the same always."""
    data = {"a": "x: 1\ny: 2\n", "b": "one", "c": "ends with a space \nhere", "d": "\ttab\n"}
    out = io.StringIO()
    Printer(Format.YAML, out=out).show(data, Text(""))
    assert "a: |\n  x: 1\n  y: 2\n" in out.getvalue()
    assert yaml.safe_load(out.getvalue()) == {"schema_version": 1, **data}

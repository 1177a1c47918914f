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
    """A terminal with colours, 40 columns wide."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "40")
    return Screen()


def test_a_table_is_fitted_to_a_narrow_terminal(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is below its row; a line names the columns that are left out."""
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


def test_a_wide_terminal_and_a_pipe_receive_all_columns(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line per row."""
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


def test_a_cell_is_coloured_by_column_and_text_on_a_terminal_only(screen: Screen) -> None:
    """And only if colour is on; the same text in another column is not coloured."""
    table = Table(TABLE.columns, (("failed", "failed", "n1", ""),), styles=TABLE.styles)
    Printer(Format.TABLE, out=screen).show(DATA, table)
    assert screen.getvalue().count("\x1b[1;31mfailed") == 1
    for output, color in ((Screen(), False), (io.StringIO(), True)):
        Printer(Format.TABLE, color=color, out=output).show(DATA, table)
        assert "31m" not in output.getvalue()


def test_marked_lines_are_coloured_on_a_terminal_only(screen: Screen) -> None:
    """They are never folded, so that they can be copied."""
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


def test_data_are_neither_coloured_nor_cut(screen: Screen) -> None:
    """On a terminal too."""
    Printer(Format.JSON, out=screen).show(DATA, TABLE)
    assert json.loads(screen.getvalue()) == {"schema_version": 1, **DATA}


def test_texts_of_several_lines_are_literal_blocks_in_yaml() -> None:
    """Where YAML allows them; every text is read back unchanged."""
    data = {"a": "x: 1\ny: 2\n", "b": "one", "c": "ends with a space \nhere", "d": "\ttab\n"}
    out = io.StringIO()
    Printer(Format.YAML, out=out).show(data, Text(""))
    assert "a: |\n  x: 1\n  y: 2\n" in out.getvalue()
    assert yaml.safe_load(out.getvalue()) == {"schema_version": 1, **data}

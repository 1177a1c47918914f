"""Output of commands: tables for people, JSON and YAML for programs, notes on stderr.

Data are written to stdout, everything else to stderr. JSON and YAML contain `schema_version`, names
in snake case, integer offsets and times in RFC 3339 UTC; they stay stable. Tables may change.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import TextIO

import yaml
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from pipeline.cli.table import GAP, Fitted, Table, fit
from schemas.json_value import Encodable

SCHEMA_VERSION = 1
_PLAIN_WIDTH = 4_000
"""Width of tables written to a file or a pipe: large enough that nothing is cut."""


class Format(Enum):
    """The value of `-o`."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Printer:
    """Writer of a command's output, in the format of `-o`.

    Args:
        output_format: of data on stdout.
        color: False switches colour off; True leaves it to the terminal.
        out: receives data; None: the process's stdout.
        err: receives notes; None: the process's stderr.
    """

    def __init__(
        self,
        output_format: Format,
        *,
        color: bool = True,
        out: TextIO | None = None,
        err: TextIO | None = None,
    ) -> None:
        self.format = output_format
        self._out = out if out is not None else sys.stdout
        self._err = err if err is not None else sys.stderr
        self._color = color

    def show(self, data: Mapping[str, Encodable], table: Table | Text | str) -> None:
        """Print one document: data for programs, or a table or text with the same content."""
        match self.format:
            case Format.JSON:
                self.line(json.dumps({"schema_version": SCHEMA_VERSION, **data}, indent=2))
            case Format.YAML:
                self._out.write(_yaml({"schema_version": SCHEMA_VERSION, **data}))
                self._out.flush()
            case Format.TABLE:
                self._formatted(table)

    def record(self, data: Mapping[str, Encodable], text: Text | str) -> None:
        """Print one of several documents: a JSON line, a YAML document, or a line of text."""
        match self.format:
            case Format.JSON:
                self.line(json.dumps(data, ensure_ascii=False))
            case Format.YAML:
                self._out.write(f"---\n{_yaml(data)}")
                self._out.flush()
            case Format.TABLE:
                self._formatted(text)

    def line(self, text: str) -> None:
        """Print a line of data, unbuffered."""
        self._out.write(f"{text}\n")
        self._out.flush()

    def note(self, text: str) -> None:
        """Print a line of diagnostics on stderr."""
        self._err.write(f"{text}\n")
        self._err.flush()

    def clear(self) -> None:
        """Clear the screen, if stdout is a terminal."""
        if self.on_terminal:
            self._out.write("\x1b[H\x1b[2J")

    @property
    def on_terminal(self) -> bool:
        """Whether stdout is a terminal."""
        return self._out.isatty()

    def can_draw(self, text: str) -> bool:
        """Whether the encoding of stdout contains all characters of a text."""
        try:
            text.encode(self._out.encoding or "ascii")
        except UnicodeEncodeError:
            return False
        return True

    @property
    def can_ask(self) -> bool:
        """Whether a confirmation can be requested: stdin and stderr are a terminal."""
        return sys.stdin.isatty() and self._err.isatty()

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Show that an operation is in progress: a spinner on a terminal, one line elsewhere."""
        if not self._err.isatty():
            self.note(text)
            yield
            return
        with self._console(self._err).status(text):
            yield

    def _console(self, stream: TextIO) -> Console:
        width = None if stream.isatty() else _PLAIN_WIDTH
        return Console(file=stream, no_color=not self._color, width=width, highlight=False)

    @contextmanager
    def _captured(self) -> Iterator[Console]:
        """A console whose lines are printed at the end of the block, without trailing spaces."""
        console = self._console(self._out)
        with console.capture() as captured:
            yield console
        for line in captured.get().splitlines():
            self.line(line.rstrip())

    def _formatted(self, shown: Table | Text | str) -> None:
        if isinstance(shown, Table):
            self._table(shown)
        elif isinstance(shown, Text) and self.on_terminal:
            with self._captured() as console:
                console.print(shown, soft_wrap=True)
        else:
            self.line(str(shown))

    def _table(self, table: Table) -> None:
        if not table.rows:
            self.note(table.empty)
            return
        with self._captured() as console:
            if self.on_terminal:
                _print_fitted(fit(table, console.width), console)
            else:
                console.print(_as_rich(table, ()))


def _print_fitted(fitted: Fitted, console: Console) -> None:
    """Print a fitted table; if texts follow its rows, each row is a table with the same widths."""
    table, widths = fitted.table, fitted.widths
    if any(fitted.below):
        console.print(_as_rich(replace(table, rows=()), widths))
        for row, text in zip(table.rows, fitted.below, strict=True):
            console.print(_as_rich(replace(table, rows=(row,)), widths, header=False))
            if text:
                console.print(Padding(Text(text), (0, 0, 0, GAP)))
    else:
        console.print(_as_rich(table, ()))
    if fitted.left_out:
        console.print(Text(f"no room for: {', '.join(fitted.left_out)}", style="dim"))


def _as_rich(table: Table, widths: Sequence[int], *, header: bool = True) -> RichTable:
    shown = RichTable(
        box=None, pad_edge=False, header_style="bold", show_edge=False, show_header=header
    )
    for at, column in enumerate(table.columns):
        shown.add_column(
            column.upper(),
            justify="right" if column in table.numbers else "left",
            overflow="fold",
            width=widths[at] if widths else None,
        )
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        shown.add_row(*(Text(cell, table.styles.get((name, cell), "")) for name, cell in cells))
    return shown


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes a text of several lines as a literal block, where YAML allows it."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _yaml(data: Mapping[str, Encodable]) -> str:
    return str(yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True))


def names(values: Sequence[str], limit: int = 8) -> str:
    """Names joined for a sentence, cut after `limit`."""
    shown = ", ".join(values[:limit])
    return shown if len(values) <= limit else f"{shown} and {len(values) - limit} more"

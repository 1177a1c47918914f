"""Shared parts of the box kinds: facts about inputs, output columns, keys, `select` entries.

A box is read in two steps. `read` parses a draft from the YAML: names, durations, texts of
expressions. When the inputs are checked, the draft's `build` checks the expressions and derives
columns, event time and key. A step that finds mistakes reports them and returns None.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.errors import Problem
from pipeline.ids import BoxName, StreamName
from pipeline.nearest import nearest_first
from pipeline.network.avro_types import RESERVED_PREFIX
from pipeline.network.coercion import is_orderable
from pipeline.network.expressions import check, syntax
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import (
    Box,
    ColumnRef,
    Computed,
    Origin,
    columns_read,
    expressions,
)
from pipeline.network.scope import Scope
from pipeline.network.types import Column, Columns
from pipeline.yaml_reader import YamlList, YamlMap

COLUMN_PATTERN = r"[A-Za-z_][A-Za-z0-9_]{0,127}"
"""Names of columns; the same as for Avro fields."""


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """Facts about an input stream.

    `sound`: False when its event time is invalid (reported); then only expressions are checked.
    """

    name: StreamName
    columns: Columns
    event_time_column: str | None
    unreadable: Mapping[str, str] = field(default_factory=dict)
    sound: bool = True


@dataclass(frozen=True, slots=True)
class Defaults:
    """Document-wide settings for reading a box.

    Args:
        window_ms: the document's window size for all boxes; None: not declared.
        code: box → the text of its Python file, or why there is none.
    """

    window_ms: int | None
    code: Mapping[BoxName, str | Problem] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Output of a box: its columns, its event time column, and its key."""

    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SingleInput(Output):
    """Common part of boxes that read one stream."""

    name: BoxName
    input: StreamName

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """The one stream it reads."""
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Entry:
    """One column to compute, as written: its name and the text of its expression.

    `named`: it is in a list of columns.
    """

    name: Text
    text: Text
    named: bool = False


@dataclass(frozen=True, slots=True)
class Header:
    """Common entries of every draft: name, line, declared key."""

    name: BoxName
    line: int
    key: tuple[Text, ...] | None


@dataclass(frozen=True, slots=True)
class Draft(ABC):
    """A box as written, before its inputs are checked; each kind has its own."""

    header: Header

    @property
    def name(self) -> BoxName:
        """The box's name."""
        return self.header.name

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.header.line

    @property
    @abstractmethod
    def inputs(self) -> tuple[Text, ...]:
        """The streams that it names, in the order of its ports."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every expression written in it, with the name used in messages."""
        return ()

    @property
    def parts(self) -> Sequence["Draft"]:
        """Boxes created with it, its only readers; empty: every box may read it."""
        return ()

    @abstractmethod
    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Box | None:
        """The checked box; None if it is invalid (reported)."""


@dataclass(frozen=True, slots=True)
class OneInput(Draft):
    """A draft that reads one stream."""

    input: Text

    @property
    def inputs(self) -> tuple[Text, ...]:
        """The one stream it reads."""
        return (self.input,)


def check_syntax(draft: Draft, report: Report) -> None:
    """Report syntax errors of a box that cannot be built because it lacks an input."""
    for entry in draft.entries:
        faults = syntax(entry.text.value, named=entry.named)
        report.faults(faults, entry.text.line, box=draft.name, column=entry.name.value)


WINDOW_WORD = "window"
"""Denotes the window at the top of the document, wherever a box takes a duration."""


def window_size(
    fields: Fields, key: str, text: Text | None, defaults: Defaults, *, low: int = 1
) -> int | None:
    """The duration under `key` in milliseconds: `5m`, or the word `window`; None: reported."""
    if text is None:
        return None
    what = f"{key} of {fields.what}"
    if text.value.strip() != WINDOW_WORD:
        return fields.as_duration(text, what, low=low)
    if defaults.window_ms is None:
        fields.problem(f"{what} says window, but the document has none at its top", text.line)
    return defaults.window_ms


def read_header(name: BoxName, fields: Fields) -> Header:
    """Read the entries that every kind of box can declare."""
    return Header(name, fields.line, fields.texts("key"))


def read_entries(fields: Fields, key: str, *, plain_list: bool) -> tuple[Entry, ...] | None:
    """The columns under `select`, `by` or `compute`; None if missing or invalid.

    Args:
        fields: the box.
        key: the key of the columns.
        plain_list: whether `[a, b]` is allowed, short for `{a: a, b: b}`.
    """
    node = fields.node(key)
    if node is None:
        return None
    if isinstance(node, YamlList) and plain_list:
        names = fields.as_texts(node, f"{key} of {fields.what}")
        if names is None:
            return None
        entries = [Entry(Text(_last_part(t.value), t.line), t, named=True) for t in names]
    elif isinstance(node, YamlMap):
        entries = []
        for written, value in node.entries:
            text = fields.as_text(value, f"{key}.{written.text} of {fields.what}")
            if text is None:
                return None
            entries.append(Entry(Text(written.text, written.line), text))
    else:
        shape = "a list or a mapping" if plain_list else "a mapping"
        fields.problem(f"{key} of {fields.what} must be {shape} of columns", node.line)
        return None
    return tuple(entries) if _names_fit(fields, key, entries) else None


def read_select(fields: Fields) -> tuple[Entry, ...] | None:
    """The columns under `select`; None if missing, empty or invalid."""
    entries = read_entries(fields, "select", plain_list=True)
    if entries is not None and not entries:
        fields.problem(f"select of {fields.what} names no column", fields.line_of("select"))
    return entries or None


def column_name_problem(name: str) -> tuple[str, str]:
    """Why a user's column cannot have this name, and a hint; both empty if it can."""
    if not re.fullmatch(COLUMN_PATTERN, name):
        hint = "letters, digits and _, not beginning with a digit"
        if name.count(")") > name.count("("):  # YAML splits `{a: f(b, c)}` at the comma
            hint = "in {…} a comma ends a column: put an expression that holds one in quotes"
        return f"{name!r} is no name for a column", hint
    if name.startswith(RESERVED_PREFIX):
        return f"{name} begins with {RESERVED_PREFIX}, which Medusa keeps for itself", ""
    return "", ""


def _last_part(text: str) -> str:
    """`left.car` is selected under the name `car`."""
    return text.rsplit(".", 1)[-1].strip().strip("`")


def _names_fit(fields: Fields, key: str, entries: Sequence[Entry]) -> bool:
    fit: list[Text] = []
    for entry in entries:
        name = entry.name
        message, hint = column_name_problem(name.value)
        if hint and entry.text.value.strip("`").endswith(name.value):
            hint = "to compute something write {name: expression}"
        if message:
            fields.problem(message, name.line, column=name.value, hint=hint)
        else:
            fit.append(name)
    return are_unique(fit, key, fields.report, fields.box) and len(fit) == len(entries)


def are_unique(names: Sequence[Text], key: str, report: Report, box: str) -> bool:
    """Whether the names under `key` are unique, ignoring case; duplicates are reported."""
    lines: dict[str, int] = {}
    for name in names:
        seen = name.value.lower() in lines
        first = lines.setdefault(name.value.lower(), name.line)
        if seen:
            where = f", first in line {first}" if first < name.line else ""
            message = f"{key} has {name.value} twice{where}"
            report.add(message, name.line, box=box, column=name.value)
    return len(lines) == len(names)


def compute(
    entries: Sequence[Entry], scope: Scope, report: Report, box: BoxName, key: str
) -> tuple[Computed, ...] | None:
    """Check the expressions of the columns under `key`; all their mistakes are reported."""
    made: list[Computed] = []
    for entry in entries:
        origin = Origin(box, f"{key}.{entry.name.value}")
        checked = check(entry.text.value, scope, origin=origin, named=entry.named)
        report.faults(checked.faults, entry.text.line, box=box, column=entry.name.value)
        if checked.expression is not None:
            made.append(Computed(entry.name.value, checked.expression))
    return tuple(made) if len(made) == len(entries) else None


def columns_of(computed: Sequence[Computed]) -> Columns:
    """The columns of computed expressions."""
    return tuple(
        Column(c.name, e.type, e.nullable, e.millis, e.form)
        for c in computed
        for e in [c.expression]
    )


def input_column(
    facts: StreamFacts, name: Text, key: str, report: Report, box: BoxName
) -> Column | None:
    """The column of an input that is named under `key`; None: there is none (reported)."""
    for column in facts.columns:
        if column.name.lower() == name.value.lower():
            return column
    report.add(
        f"{key} names {name.value}, which is no column of {facts.name}",
        name.line,
        box=box,
        column=name.value,
        choices=nearest_first(name.value, tuple(c.name for c in facts.columns)),
    )
    return None


def read_by_expressions(box: Box, _stream: StreamName) -> frozenset[str]:
    """The columns that the expressions of a box with one input read."""
    return columns_read(expressions(box))


def unchanged_column(computed: Sequence[Computed], wanted: Sequence[ColumnRef]) -> str | None:
    """The first output column that is an unchanged one of some input columns."""
    return next((c.name for c in computed if c.expression.plain in wanted), None)


def check_groups(
    header: Header, entries: Sequence[Entry], by: Sequence[Computed], report: Report
) -> bool:
    """Whether rows can be grouped by these columns; others are reported.

    `entries`: the columns as written, one for each of `by`.
    """
    wrong = [
        (e, c) for e, c in zip(entries, by, strict=True) if not is_orderable(c.expression.type)
    ]
    for entry, c in wrong:
        message = f"{c.name} is {c.expression.type}, and rows cannot be grouped by that"
        report.add(message, entry.text.line, box=header.name, column=c.name)
    return not wrong


def check_distinct(
    header: Header, columns: Columns, written: Sequence[Entry], what: str, report: Report
) -> bool:
    """Whether the output columns have different names; duplicates are reported.

    Args:
        header: the box.
        columns: those of the output.
        written: those named in the document; the message has the line of the last one.
        what: the output's columns, in words for the message.
        report: receives mistakes.
    """
    names = [column.name.lower() for column in columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    lines = {entry.name.value.lower(): entry.name.line for entry in written}
    for name in twice:
        report.add(
            f"two columns of the output are called {name}",
            lines.get(name, header.line),
            box=header.name,
            column=name,
            hint=f"the output has {what}",
        )
    return not twice


def check_key(header: Header, columns: Columns, report: Report) -> tuple[str, ...] | None:
    """The declared key, checked against the output columns; None: not declared, or reported."""
    if header.key is None:
        return None
    by_name = {column.name.lower(): column for column in columns}
    names: list[str] = []
    for text in header.key:
        column = by_name.get(text.value.lower())
        if column is None:
            report.add(
                f"key names {text.value}, which is no column of the output",
                text.line,
                box=header.name,
                column=text.value,
                choices=nearest_first(text.value, tuple(c.name for c in columns)),
            )
        elif not is_orderable(column.type):
            report.add(
                f"{column.name} cannot be part of a key: it is {column.type}",
                text.line,
                box=header.name,
                column=column.name,
            )
        else:
            names.append(column.name)
    if not header.key:
        report.add("key is empty", header.line, box=header.name, hint="leave it out")
    once = are_unique(header.key, "key", report, header.name)
    return tuple(names) if once and names and len(names) == len(header.key) else None


def key_or(
    header: Header, columns: Columns, report: Report, default: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The declared key, or the default; None if a declared one is invalid (reported)."""
    return default if header.key is None else check_key(header, columns, report)


def refuse_unreadable(facts: StreamFacts, header: Header, report: Report) -> bool:
    """Report the fields that a box that passes all columns would have to drop."""
    for name, reason in facts.unreadable.items():
        report.add(
            f"column {name} of {facts.name} cannot be passed on: it holds {reason}",
            header.line,
            box=header.name,
            column=name,
            hint=f"put a map box in between that selects the columns of {facts.name} you need",
        )
    return bool(facts.unreadable)

"""python: a user-defined function over the rows of a stream."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline import durations
from pipeline.errors import Problem
from pipeline.ids import BoxName, StreamName
from pipeline.network import type_text
from pipeline.network.boxes.common import (
    Defaults,
    OneInput,
    SingleInput,
    StreamFacts,
    key_or,
    read_entries,
    read_header,
    refuse_unreadable,
)
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.types import Columns

TIMEOUT_MS: Final = durations.parse("10s")
TIMEOUT_MIN_MS: Final = durations.parse("100ms")
TIMEOUT_MAX_MS: Final = durations.parse("1m")
SOURCE_MAX: Final = 200_000
"""Size limit of a file in bytes: the catalog stores it with every version of the network."""

_FILE = re.compile(r"(?P<file>[^:]+\.py):(?P<name>[A-Za-z_]\w*)")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Python(SingleInput):
    """`{python: STREAM, function: FILE.py:NAME, columns: {COLUMN: TYPE, …}}`.

    One row in, at most one row out; event time passes, and so does the key unless one is declared.

    Args:
        function: `alerts.py:classify`, or `package.module:classify`.
        source: the text of the file; empty for an importable module.
        timeout_ms: time limit of one call.
    """

    function: str
    source: str
    timeout_ms: int
    event_time_column: None = field(default=None, init=False)
    """None: a function may change any column."""

    kind = "python"


@dataclass(frozen=True, slots=True)
class CodeReference:
    """A Python file that a box needs, relative to the document."""

    box: BoxName
    file: str


@dataclass(frozen=True, slots=True)
class PythonDraft(OneInput):
    """A Python box as written."""

    function: str
    source: str
    columns: Columns
    timeout_ms: int

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Python | None:
        """Check the key; the function itself is checked where it can run."""
        (facts,) = inputs
        key = key_or(self.header, self.columns, report, ())
        if refuse_unreadable(facts, self.header, report) or key is None:
            return None
        return Python(
            name=self.name,
            input=facts.name,
            function=self.function,
            source=self.source,
            columns=self.columns,
            timeout_ms=self.timeout_ms,
            key=key,
        )


def read(name: BoxName, fields: Fields, defaults: Defaults) -> PythonDraft | None:
    """Read a Python box from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Python.kind, required=True)
    function = fields.text("function", required=True)
    fields.required("columns")
    columns = _columns(fields)
    timeout_ms = fields.duration("timeout", TIMEOUT_MS, low=TIMEOUT_MIN_MS)
    if timeout_ms > TIMEOUT_MAX_MS:
        most = durations.format(TIMEOUT_MAX_MS)
        fields.problem(
            f"timeout of {fields.what} must be at most {most}", fields.line_of("timeout")
        )
    source = None if function is None else _source(name, function, fields, defaults)
    if stream is None or function is None or columns is None or source is None:
        return None
    return PythonDraft(header, stream, function.value, source, columns, timeout_ms)


def reads(_box: Python, _stream: StreamName) -> None:
    """A function may read every column."""


def read_function(fields: Fields) -> Text | None:
    """The function that a box names; None if it names none."""
    return fields.text("function") if fields.has(Python.kind) else None


def read_reference(name: BoxName, fields: Fields) -> CodeReference | None:
    """The file that a box names; None if it names none."""
    function = read_function(fields)
    found = _FILE.fullmatch(function.value) if function else None
    return CodeReference(name, found["file"]) if found else None


def _source(name: BoxName, function: Text, fields: Fields, defaults: Defaults) -> str | None:
    """The text of the file; empty for a module, None if invalid (reported)."""
    if _FILE.fullmatch(function.value) is None:
        if _MODULE.fullmatch(function.value):
            return ""
        fields.problem(
            f"function of {fields.what} cannot be {function.value!r}",
            function.line,
            hint="write FILE.py:NAME, or MODULE:NAME of a module that is installed on every node",
        )
        return None
    found = defaults.code.get(name)
    if isinstance(found, str) and 0 < len(found.encode()) <= SOURCE_MAX:
        return found
    if isinstance(found, Problem):
        fields.problem(found.message, function.line, choices=found.choices, hint=found.hint)
    elif found is None:
        fields.problem(f"the file of {function.value} is missing", function.line)
    elif not found:
        fields.problem(f"the file of {function.value} is empty", function.line)
    else:
        fields.problem(
            f"the file of {function.value} has more than {SOURCE_MAX:,} bytes",
            function.line,
            hint="put what is large into a package that is installed on every node",
        )
    return None


def _columns(fields: Fields) -> Columns | None:
    """The declared columns; None if one is invalid (reported)."""
    entries = read_entries(fields, "columns", plain_list=False)
    if entries is None:
        return None
    if not entries:
        fields.problem(f"columns of {fields.what} names no column", fields.line_of("columns"))
        return None
    columns = []
    for entry in entries:
        try:
            columns.append(type_text.read_column(entry.name.value, entry.text.value))
        except type_text.UnknownTypeError as error:
            fields.problem(
                f"{entry.text.value!r} is no type: {error}",
                entry.text.line,
                column=entry.name.value,
                hint=f"types are {', '.join(type_text.KINDS)}",
            )
    return tuple(columns) if len(columns) == len(entries) else None

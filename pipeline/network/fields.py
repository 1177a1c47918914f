"""Typed access to a document's values by key; every mistake is reported with its line."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypedDict, Unpack

from pipeline import durations, sizes
from pipeline.errors import Problem
from pipeline.nearest import nearest_first
from pipeline.network.term import Fault
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar

_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Text:
    """A value as written, and its line."""

    value: str
    line: int


class More(TypedDict, total=False):
    """The optional fields of a `Problem`."""

    box: str
    column: str
    choices: tuple[str, ...]
    hint: str


class MoreInBox(TypedDict, total=False):
    """The same for a place whose box is fixed."""

    column: str
    choices: tuple[str, ...]
    hint: str


@dataclass(slots=True)
class Report:
    """Collects the problems of one document."""

    file: str
    problems: list[Problem] = field(default_factory=list)

    def add(self, message: str, line: int, **more: Unpack[More]) -> None:
        """Add a problem; equal ones are kept once."""
        problem = Problem(message, self.file, line, **more)
        if problem not in self.problems:
            self.problems.append(problem)

    def faults(
        self, faults: Iterable[Fault], line: int, *, box: str = "", column: str = ""
    ) -> None:
        """Add the faults of an expression."""
        for fault in faults:
            self.add(
                fault.message, line, box=box, column=column, choices=fault.choices, hint=fault.hint
            )


@dataclass(frozen=True, slots=True)
class _Kind:
    """A number that is written with a unit: its name, its parser and its units, for messages."""

    name: str
    parse: Callable[[str], int]
    units: str


_DURATION = _Kind("duration", durations.parse, "ms, s, m, h or d")
_SIZE = _Kind("size", sizes.parse, "B, KiB, MiB, GiB or TiB")


class Fields:
    """The entries of one mapping, read by key; `finish` reports the entries never read.

    Args:
        node: the mapping; None when it is missing or invalid (already reported): then every value
            is absent.
        what: what the mapping describes, for messages: "stream sightings", "box tolls".
        box: the box that contains it, if any.
    """

    def __init__(self, node: YamlMap | None, what: str, report: Report, box: str = "") -> None:
        self.what = what
        self.box = box
        self.report = report
        self.line = node.line if node else 0
        self.known: list[str] = []
        self._entries = {key.text: (key, value) for key, value in node.entries} if node else {}

    def has(self, key: str) -> bool:
        """Whether the key exists."""
        return key in self._entries

    def line_of(self, key: str) -> int:
        """The line of a key, or of the mapping if it is missing."""
        return self._entries[key][0].line if key in self._entries else self.line

    def problem(self, message: str, line: int, **more: Unpack[MoreInBox]) -> None:
        """Report a problem in this mapping."""
        self.report.add(message, line, box=self.box, **more)

    def node(self, key: str) -> YamlNode | None:
        """The value as a node; None if missing or empty."""
        self.known.append(key)
        entry = self._entries.get(key)
        if entry is None:
            return None
        if isinstance(entry[1], YamlScalar) and entry[1].null:
            self.problem(f"{key} of {self.what} has no value", entry[0].line)
            return None
        return entry[1]

    def required(self, key: str) -> bool:
        """Whether the key exists; otherwise reported."""
        if key not in self._entries:
            self.problem(f"{self.what} needs {key}", self.line)
        return key in self._entries

    def text(self, key: str, *, required: bool = False) -> Text | None:
        """A scalar value."""
        node = self.node(key)
        if node is None:
            if required:
                self.required(key)
            return None
        return self.as_text(node, f"{key} of {self.what}")

    def as_text(self, node: YamlNode, what: str) -> Text | None:
        """A node that must be a scalar."""
        if not isinstance(node, YamlScalar):
            kind = "list" if isinstance(node, YamlList) else "mapping"
            self.problem(f"{what} must be one value, not a {kind}", node.line)
            return None
        return Text(node.text, node.line)

    def mapping(self, key: str) -> YamlMap | None:
        """A value that is a mapping."""
        node = self.node(key)
        if node is None or isinstance(node, YamlMap):
            return node
        self.problem(f"{key} of {self.what} must be a mapping", node.line)
        return None

    def texts(self, key: str) -> tuple[Text, ...] | None:
        """A value that is a list of words; None if missing or invalid."""
        node = self.node(key)
        return None if node is None else self.as_texts(node, f"{key} of {self.what}")

    def as_texts(self, node: YamlNode, what: str) -> tuple[Text, ...] | None:
        """A node that must be a list of words."""
        if not isinstance(node, YamlList):
            self.problem(f"{what} must be a list", node.line, hint=_list_hint(node))
            return None
        taken = [self.as_text(item, f"an entry of {what}") for item in node.items]
        return None if None in taken else tuple(t for t in taken if t is not None)

    def choice(self, key: str, options: tuple[str, ...], default: str) -> str:
        """One of some words."""
        found = self.text(key)
        if found is None or found.value in options:
            return found.value if found else default
        self.problem(
            f"{key} of {self.what} cannot be {_shown(found)}",
            found.line,
            choices=nearest_first(found.value, options),
        )
        return default

    def boolean(self, key: str, *, default: bool) -> bool:
        """`true` or `false`."""
        return self.choice(key, ("true", "false"), "true" if default else "false") == "true"

    def integer(self, key: str, default: int, *, low: int, high: int) -> int:
        """A whole number within bounds."""
        found = self.text(key)
        if found is None:
            return default
        if found.value.isascii() and found.value.isdigit() and len(found.value) <= len(str(high)):
            value = int(found.value)
            if low <= value <= high:
                return value
        self.problem(
            f"{key} of {self.what} must be a whole number from {low} to {high},"
            f" not {_shown(found)}",
            found.line,
        )
        return default

    def duration(self, key: str, default: int, *, low: int = 0) -> int:
        """A duration in milliseconds."""
        found = self.text(key)
        if found is None:
            return default
        made = self.as_duration(found, f"{key} of {self.what}", low=low)
        return default if made is None else made

    def as_duration(self, found: Text, what: str, *, low: int = 0) -> int | None:
        """A text that must be a duration; None if it is none (reported)."""
        try:
            value = durations.parse(found.value)
        except ValueError as error:
            self.problem(f"{what}: {error}", found.line)
            return None
        if value < low:
            self.problem(f"{what} must be at least {durations.format(low)}", found.line)
            return None
        return value

    def duration_between(self, key: str, *, low: int, high: int) -> int | None:
        """A duration within bounds, in milliseconds; None if missing or invalid (reported)."""
        bounds = f"from {durations.format(low)} to {durations.format(high)}"
        return self._between(key, _DURATION, range(low, high + 1), bounds)

    def size_between(self, key: str, *, low: int, high: int) -> int | None:
        """A size within bounds, in bytes; None if missing or invalid (reported)."""
        bounds = f"from {sizes.format(low)} to {sizes.format(high)}"
        return self._between(key, _SIZE, range(low, high + 1), bounds)

    def _between(self, key: str, kind: _Kind, allowed: range, bounds: str) -> int | None:
        found = self.text(key)
        if found is None:
            return None
        hint = ""
        try:
            value = kind.parse(found.value)
        except ValueError:
            hint = f"write a whole number and {kind.units}"
        else:
            if value in allowed:
                return value
        message = f"{key} of {self.what} must be a {kind.name} {bounds}, not {_shown(found)}"
        self.problem(message, found.line, hint=hint)
        return None

    def finish(self) -> None:
        """Report every key that was never read."""
        for key, (written, _) in self._entries.items():
            if key in self.known:
                continue
            self.problem(
                f"{self.what} has no key {key}",
                written.line,
                choices=nearest_first(key, tuple(dict.fromkeys(self.known))),
            )


def _list_hint(node: YamlNode) -> str:
    return f"write [{node.text}]" if isinstance(node, YamlScalar) else ""


def _shown(text: Text) -> str:
    return repr(text.value if len(text.value) <= _SHOWN else text.value[:_SHOWN] + "…")

"""Parser of a test document: YAML in, steps as written out. Pure.

The contents of streams, schemas and files are not read here; `check.py` continues with them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

from pipeline import durations, yaml_reader
from pipeline.errors import DocumentError
from pipeline.ids import Millis
from pipeline.network.fields import Fields, Report, Text
from pipeline.testing.steps import Advance, Settle, Wait
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode
from schemas.logical import Native

WAIT_MAX_MS: Final = durations.UNITS_MS["d"]
VERBS: Final = ("send", "advance", "wait", "settle", "expect", "dead_letters")
_WHOLE = re.compile(r"[-+]?[0-9]{1,400}", re.ASCII)
_FRACTION = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]{1,4})?", re.ASCII)
_TIME_HINT = "write 2026-01-31T12:00:00Z"


@dataclass(frozen=True, slots=True)
class Written:
    """A record as written: a JSON value, and the line of it and of each of its fields."""

    value: Any
    line: int
    lines: tuple[tuple[str, int], ...] = ()

    def line_of(self, path: str) -> int:
        """The line of a part of it, such as `/speed`."""
        return dict(self.lines).get(path.split("/")[1] if "/" in path else "", self.line)


@dataclass(frozen=True, slots=True)
class Records:
    """Records in the document, or the name of their file."""

    written: tuple[Written, ...]
    file: Text | None


@dataclass(frozen=True, slots=True)
class SendWritten:
    """`send`."""

    stream: Text
    records: Records
    key: Text | None
    partition: int
    timestamp_ms: Millis | None


@dataclass(frozen=True, slots=True)
class ExpectWritten:
    """`expect`."""

    stream: Text
    records: Records
    in_order: bool
    line: int


@dataclass(frozen=True, slots=True)
class DeadLettersWritten:
    """`dead_letters`."""

    letters: tuple[Written, ...]
    line: int


StepWritten = SendWritten | Advance | Wait | Settle | ExpectWritten | DeadLettersWritten


@dataclass(frozen=True, slots=True)
class TestWritten:
    """A test as written.

    Args:
        file: its name, for messages.
        network: the network's document, if named.
        schemas: schema files of the subjects that the network names.
        steps: in order.
    """

    __test__ = False  # pytest collects classes named Test…

    file: str
    network: Text | None
    schemas: tuple[tuple[str, Text], ...]
    steps: tuple[StepWritten, ...]


def read(text: str, file: str) -> TestWritten:
    """The steps of a test.

    Raises:
        DocumentError: every mistake in its form.
    """
    tree, problems = yaml_reader.read(text, file)
    report = Report(file, list(problems))
    if tree is not None and not isinstance(tree, YamlMap):
        report.add("a test is a mapping with steps", tree.line)
    fields = Fields(tree if isinstance(tree, YamlMap) else None, "the test", report)
    network = fields.text("network")
    schemas = _schemas(fields)
    steps = tuple(_steps(fields, report)) if isinstance(tree, YamlMap) else ()
    fields.finish()
    if report.problems:
        raise DocumentError(tuple(sorted(report.problems, key=lambda p: p.line)))
    return TestWritten(file, network, schemas, steps)


def json_of(node: YamlNode) -> Native:
    """A node as JSON; fractions keep all their digits."""
    if isinstance(node, YamlMap):
        return {key.text: json_of(value) for key, value in node.entries}
    if isinstance(node, YamlList):
        return [json_of(item) for item in node.items]
    if node.null or node.quoted:
        return None if node.null else node.text
    if node.text in ("true", "false"):
        return node.text == "true"
    if _WHOLE.fullmatch(node.text):
        return int(node.text)
    return Decimal(node.text) if _FRACTION.fullmatch(node.text) else node.text


def time_of(text: str) -> Millis:
    """An instant in RFC 3339; without a zone it is UTC.

    Raises:
        ValueError: it is not one.
    """
    moment = datetime.fromisoformat(text)
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return Millis(
        since.days * durations.UNITS_MS["d"] + since.seconds * 1000 + since.microseconds // 1000
    )


def _schemas(fields: Fields) -> tuple[tuple[str, Text], ...]:
    node = fields.mapping("schemas")
    found = (
        (subject.text, fields.as_text(value, f"the schema of {subject.text}"))
        for subject, value in (node.entries if node else ())
    )
    return tuple((subject, file) for subject, file in found if file is not None)


def _steps(fields: Fields, report: Report) -> Iterator[StepWritten]:
    fields.required("steps")
    node = fields.node("steps")
    if node is not None and not isinstance(node, YamlList):
        report.add("steps must be a list", node.line)
        return
    if node is not None and not node.items:
        hint = "write what is sent and what is expected"
        report.add("steps is empty: such a test cannot fail", node.line, hint=hint)
    for item in node.items if node else ():
        if isinstance(item, YamlMap):
            found = _Step(item, report).read()
        else:
            word = "" if isinstance(item, YamlList) else item.text
            found = Settle() if word == "settle" else None
            if found is None:
                report.add(
                    f"a step is settle, or begins with one of: {', '.join(VERBS)}", item.line
                )
        if found is not None:
            yield found


class _Step:
    """One step that is a mapping."""

    def __init__(self, node: YamlMap, report: Report) -> None:
        self.line = node.line
        self.report = report
        written = {key.text for key, _ in node.entries}
        self.verbs = [verb for verb in VERBS if verb in written]
        what = f"the step {self.verbs[0]}" if self.verbs else "the step"
        self.fields = Fields(node, what, report)

    def read(self) -> StepWritten | None:
        if len(self.verbs) != 1:
            what = " and ".join(self.verbs) if self.verbs else "none of them"
            self.report.add(f"a step has one of {', '.join(VERBS)}; this has {what}", self.line)
            return None
        found = {
            "send": self._send,
            "advance": self._advance,
            "wait": self._wait,
            "settle": self._settle,
            "expect": self._expect,
            "dead_letters": self._dead_letters,
        }[self.verbs[0]]()
        self.fields.finish()
        return found

    def _send(self) -> StepWritten | None:
        stream, records = self.fields.text("send"), self._records()
        key = self.fields.text("key")
        partition = self.fields.integer("partition", 0, low=0, high=999)
        timestamp_ms = self._time("timestamp")
        if stream is None or records is None:
            return None
        return SendWritten(stream, records, key, partition, timestamp_ms)

    def _advance(self) -> StepWritten | None:
        to_ms = self._time("advance")
        return None if to_ms is None else Advance(to_ms)

    def _wait(self) -> StepWritten | None:
        ms = self.fields.duration("wait", 0, low=1)
        if ms > WAIT_MAX_MS:
            most = durations.format(WAIT_MAX_MS)
            hint = "advance goes as far as you like."
            self.report.add(f"wait: at most {most}", self.fields.line_of("wait"), hint=hint)
        return Wait(ms)

    def _settle(self) -> StepWritten | None:
        if self.fields.text("settle") is not None:
            self.report.add("settle stands alone: `- settle`", self.line)
        return None

    def _expect(self) -> StepWritten | None:
        stream, records = self.fields.text("expect"), self._records()
        order = self.fields.choice("order", ("any", "exact"), "any")
        if stream is None or records is None:
            return None
        return ExpectWritten(stream, records, order == "exact", self.line)

    def _dead_letters(self) -> StepWritten | None:
        node = self.fields.node("dead_letters")
        if node is None:
            return None
        letters = self._listed(node, "dead_letters")
        return None if letters is None else DeadLettersWritten(letters, self.line)

    def _records(self) -> Records | None:
        """Either of `records` and `file`."""
        node, file = self.fields.node("records"), self.fields.text("file")
        if (node is None) == (file is None):
            if not (self.fields.has("records") and node is None):
                self.report.add(f"{self.fields.what} needs either records or file", self.line)
            return None
        if node is None:
            return Records((), file)
        written = self._listed(node, "records")
        return None if written is None else Records(written, None)

    def _listed(self, node: YamlNode, what: str) -> tuple[Written, ...] | None:
        if not isinstance(node, YamlList):
            self.report.add(f"{what} of {self.fields.what} must be a list", node.line)
            return None
        found = []
        for item in node.items:
            lines = (
                tuple((k.text, k.line) for k, _ in item.entries)
                if isinstance(item, YamlMap)
                else ()
            )
            found.append(Written(json_of(item), item.line, lines))
        return tuple(found)

    def _time(self, key: str) -> Millis | None:
        found = self.fields.text(key)
        if found is None:
            return None
        try:
            return time_of(found.value)
        except (ValueError, OverflowError):
            self.report.add(f"{key}: {found.value!r} is no time", found.line, hint=_TIME_HINT)
            return None

"""YAML reader that returns nodes with their lines, so that every mistake can be located.

Scalars remain text as written: `on`, `yes` and `1.0` mean what the reader of the document sees, and
the caller decides whether a value is a number or a name.
"""

from dataclasses import dataclass, field

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipeline.errors import Problem

DEPTH_MAX = 20
NODES_MAX = 20_000
"""Bounds on a document; a real one has a few hundred nodes, five deep."""

_NULL_TAG = "tag:yaml.org,2002:null"
_MERGE = "<<"


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """One value as written; `null`: nothing, `~` or `null` without quotes.

    `quoted`: it is a text whatever its form; only values of records use that.
    """

    text: str
    line: int
    null: bool = False
    quoted: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class YamlList:
    """A list."""

    items: tuple["YamlNode", ...]
    line: int


@dataclass(frozen=True, slots=True)
class YamlMap:
    """A mapping, in the order written; keys are unique."""

    entries: tuple[tuple[YamlScalar, "YamlNode"], ...]
    line: int


YamlNode = YamlScalar | YamlList | YamlMap


def read(text: str, file: str) -> tuple[YamlNode | None, tuple[Problem, ...]]:
    """The tree of one YAML document, and the mistakes of its form.

    The tree is None if nothing can be read. Duplicate keys are reported and dropped.
    """
    try:
        problem = _too_large(text, file)
        if problem is not None:
            return None, (problem,)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        return None, (_syntax_problem(error, file),)
    except yaml.YAMLError as error:
        return None, (Problem(f"not YAML: {str(error).splitlines()[0]}", file=file),)
    if root is None:
        return None, (Problem("the document is empty", file=file, line=1),)
    builder = _Builder(file)
    return builder.node(root), tuple(builder.problems)


def _too_large(text: str, file: str) -> Problem | None:
    """Check the flat events first: composing a tree recurses, so its depth must be bounded."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH_MAX or count > NODES_MAX:
            line = event.start_mark.line + 1 if event.start_mark else 1
            what = f"nested more than {DEPTH_MAX} deep" if depth > DEPTH_MAX else "too long"
            return Problem(f"the document is {what}", file=file, line=line)
    return None


def _syntax_problem(error: yaml.MarkedYAMLError, file: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    where = f" (column {mark.column + 1})" if mark else ""
    what = error.problem or error.context or "it does not parse"
    hint = "indent with spaces" if "\\t" in what else ""
    line = mark.line + 1 if mark else 0
    return Problem(f"not YAML: {what}{where}", file=file, line=line, hint=hint)


class _Builder:
    """Converts PyYAML's nodes; an alias returns the same node again, a loop is reported."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self._made: dict[int, YamlNode] = {}
        self._open: set[int] = set()

    def node(self, node: Node) -> YamlNode:
        known = self._made.get(id(node))
        if known is not None:
            return known
        line = node.start_mark.line + 1
        if id(node) in self._open:
            self.problems.append(
                Problem("an alias points to what it is part of", file=self.file, line=line)
            )
            return YamlScalar("", line, null=True)
        self._open.add(id(node))
        made = self._build(node, line)
        self._open.discard(id(node))
        self._made[id(node)] = made
        return made

    def _build(self, node: Node, line: int) -> YamlNode:
        if isinstance(node, SequenceNode):
            return YamlList(tuple(self.node(item) for item in node.value), line)
        if isinstance(node, MappingNode):
            return YamlMap(self._entries(node), line)
        plain = isinstance(node, ScalarNode) and node.style is None
        null = plain and node.tag == _NULL_TAG
        return YamlScalar(self._text(str(node.value), line), line, null=null, quoted=not plain)

    def _text(self, text: str, line: int) -> str:
        r"""With one character for both halves of a surrogate pair: JSON writes `\ud83d\ude00`."""
        try:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._report("the text has half of a surrogate pair", line)
            return ""

    def _entries(self, node: MappingNode) -> tuple[tuple[YamlScalar, YamlNode], ...]:
        entries: dict[str, tuple[YamlScalar, YamlNode]] = {}
        for key_node, value_node in node.value:
            key, value = self.node(key_node), self.node(value_node)
            if not isinstance(key, YamlScalar):
                self._report("a key must be a plain word", key.line)
            elif key.text == _MERGE:
                self._report("merge keys (<<) are not supported", key.line)
            elif key.text in entries:
                first = entries[key.text][0].line
                self._report(f"{key.text} is written twice, first in line {first}", key.line)
            else:
                entries[key.text] = (key, value)
        return tuple(entries.values())

    def _report(self, message: str, line: int) -> None:
        self.problems.append(Problem(message, file=self.file, line=line))

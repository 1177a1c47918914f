"""A network document before checking: a tree, and the source line of each part.

A YAML file and a Python file give the same kind of tree, so that one loader checks both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import Problem
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar
from schemas.json_value import Json


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Written:
    """A document as written.

    Args:
        tree: its content; None if it could not be read.
        file: its name, for messages.
        problems: mistakes of its form.
        places: source lines of the lines of the tree, as calls in several Python files have them:
            line n is `places[n - 1]`. Empty: they are the lines of `file`.
    """

    tree: YamlNode | None
    file: str
    problems: tuple[Problem, ...] = ()
    places: tuple[Place, ...] = ()

    def located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Problems in the order of the document, each with its file and line."""
        ordered = sorted(problems, key=lambda problem: problem.line)
        if not self.places:
            return tuple(ordered)
        return tuple(
            replace(problem, file=place.file, line=place.line)
            for problem in ordered
            for place in [self.places[problem.line - 1] if problem.line else Place(self.file, 0)]
        )

    def box_places(self) -> Mapping[str, Place]:
        """Where each box is written, for mistakes that are found without its line."""
        root = self.tree.entries if isinstance(self.tree, YamlMap) else ()
        boxes = [node for key, node in root if key.text == "boxes" and isinstance(node, YamlMap)]
        return {
            key.text: self.places[key.line - 1] if self.places else Place(self.file, key.line)
            for section in boxes
            for key, _ in section.entries
        }


def node_as_data(node: YamlNode) -> list[Json]:
    """A tree as plain lists, texts and numbers, for sending between processes."""
    if isinstance(node, YamlScalar):
        return ["scalar", node.line, node.text, node.null]
    if isinstance(node, YamlList):
        return ["list", node.line, [node_as_data(item) for item in node.items]]
    entries: list[Json] = [[key.text, key.line, node_as_data(value)] for key, value in node.entries]
    return ["map", node.line, entries]


def node_from_data(data: list[Any]) -> YamlNode:
    """The inverse of `node_as_data`."""
    kind, line, content, *null = data
    if kind == "scalar":
        return YamlScalar(content, line, *null)
    if kind == "list":
        return YamlList(tuple(node_from_data(item) for item in content), line)
    return YamlMap(
        tuple((YamlScalar(key, at), node_from_data(value)) for key, at, value in content), line
    )

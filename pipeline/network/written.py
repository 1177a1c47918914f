"""A network document before it is checked: a tree, and where each part of it was written.

A YAML file and a Python file give the same kind of tree, so that one loader checks both.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from pipeline.errors import Problem
from pipeline.network.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar
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
        tree: its content; None when it could not be read.
        file: its name, for messages.
        problems: what is wrong with its form.
        places: what the lines of the tree stand for, as calls in several Python files do: line n
            is `places[n - 1]`. Empty: they are the lines of `file`.
    """

    tree: YamlNode | None
    file: str
    problems: tuple[Problem, ...] = ()
    places: tuple[Place, ...] = ()

    def located(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Problems in the order of the document, each with the file and line where it is."""
        ordered = sorted(problems, key=lambda problem: problem.line)
        if not self.places:
            return tuple(ordered)
        return tuple(
            replace(problem, file=place.file, line=place.line)
            for problem in ordered
            for place in [self.places[problem.line - 1] if problem.line else Place(self.file, 0)]
        )


def node_as_data(node: YamlNode) -> list[Json]:
    """A tree as plain lists, texts and numbers, to be sent from one process to another."""
    if isinstance(node, YamlScalar):
        return ["scalar", node.line, node.text, node.null]
    if isinstance(node, YamlList):
        return ["list", node.line, [node_as_data(item) for item in node.items]]
    entries: list[Json] = [[key.text, key.line, node_as_data(value)] for key, value in node.entries]
    return ["map", node.line, entries]


def node_from_data(data: list[Any]) -> YamlNode:
    """What `node_as_data` was made from."""
    kind, line, content, *null = data
    if kind == "scalar":
        return YamlScalar(content, line, *null)
    if kind == "list":
        return YamlList(tuple(node_from_data(item) for item in content), line)
    return YamlMap(
        tuple((YamlScalar(key, at), node_from_data(value)) for key, at, value in content), line
    )

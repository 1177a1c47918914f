"""Typed access to the keys of a YAML mapping; the first mistake is raised with its line."""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from pipeline.errors import Problem
from pipeline.nearest import nearest_first
from pipeline.yaml_reader import YamlList, YamlMap, YamlNode, YamlScalar

T = TypeVar("T")


class WrongValue(Exception):  # noqa: N818 - it becomes a DocumentError
    """A value that is not what its key needs; carries one problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Keys:
    """The entries of a mapping: each key is read once; `end` refuses the others.

    Every method raises `WrongValue`.

    Args:
        node: the mapping.
        what: what it describes, for messages.
        file: its name, for messages.
    """

    def __init__(self, node: YamlNode, what: str, file: str) -> None:
        self.what, self.file = what, file
        if not isinstance(node, YamlMap):
            raise self._wrong(f"{what} is a mapping: `{{key: value}}`", node.line)
        self._entries: Mapping[str, tuple[YamlScalar, YamlNode]] = {
            key.text: (key, value) for key, value in node.entries
        }
        self._line = node.line
        self._known: list[str] = []

    def _wrong(self, message: str, line: int, choices: tuple[str, ...] = ()) -> WrongValue:
        return WrongValue(Problem(message, self.file, line, choices=choices))

    def node(self, key: str) -> YamlNode | None:
        """The value of a key as a node; None: it is missing or empty."""
        self._known.append(key)
        found = self._entries.get(key)
        empty = found is not None and isinstance(found[1], YamlScalar) and found[1].null
        return None if found is None or empty else found[1]

    def needed(self, key: str) -> YamlNode:
        """The value of a key that must be there, as a node."""
        found = self.node(key)
        if found is None:
            raise self._wrong(f"{self.what} needs {key}", self._line)
        return found

    def value(self, key: str, convert: Callable[[str], T]) -> T:
        """The value of a key that must be there, converted; ValueError: it cannot be that."""
        return self._converted(key, self.needed(key), convert)

    def optional(self, key: str, convert: Callable[[str], T], default: T) -> T:
        """The value of a key, converted; `default` if it is missing."""
        found = self.node(key)
        return default if found is None else self._converted(key, found, convert)

    def texts(self, key: str) -> frozenset[str]:
        """The values of a list; empty if it is missing."""
        found = self.node(key)
        if found is None:
            return frozenset()
        if not isinstance(found, YamlList):
            raise self._wrong(f"{key} of {self.what} is a list: `[a, b]`", found.line)
        return frozenset(self._converted(key, item, str) for item in found.items)

    def end(self) -> None:
        """Refuse the keys that were never read."""
        for key, (written, _) in self._entries.items():
            if key not in self._known:
                choices = nearest_first(key, self._known)
                raise self._wrong(f"{self.what} has no key {key}", written.line, choices)

    def _converted(self, key: str, node: YamlNode, convert: Callable[[str], T]) -> T:
        if not isinstance(node, YamlScalar):
            raise self._wrong(f"{key} of {self.what} is one value", node.line)
        try:
            return convert(node.text)
        except ValueError as error:
            raise self._wrong(f"{key} of {self.what}: {error}", node.line) from error


def matching(pattern: str, what: str) -> Callable[[str], str]:
    """Converter of a text that has to match a pattern."""

    def convert(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f"{text!r} is not {what}: lower case letters, digits and _")
        return text

    return convert


def one_of(*choices: str) -> Callable[[str], str]:
    """Converter of one of some words."""

    def convert(text: str) -> str:
        if text not in choices:
            raise ValueError(f"{text!r} is none of {', '.join(choices)}")
        return text

    return convert


def truth(text: str) -> bool:
    """The value of `true` or `false`."""
    return one_of("true", "false")(text) == "true"


def whole(text: str) -> int:
    """A whole number, not negative."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is no whole number")
    return int(text)

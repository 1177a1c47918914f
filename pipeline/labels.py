"""Labels of nodes, and selectors that say which nodes are meant.

A label is `zone=a`. A selector is a list of requirements, all of which a node has to meet:
`zone=a`, `zone=a|b` (one of them), `zone!=a` (not that, or no such label), `zone` (any value).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

LABEL_WORDS = "KEY=VALUE, of letters, digits, - . and _"
SELECTOR_WORDS = "KEY=VALUE, KEY=VALUE|VALUE, KEY!=VALUE or KEY, with commas between"

_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_LABEL = re.compile(rf"({_WORD})=({_WORD})")
_REQUIREMENT = re.compile(rf"({_WORD})(?:(!?=)({_WORD}(?:\|{_WORD})*))?")
LABELS_PATTERN = rf"({_WORD}={_WORD}(\s*,\s*{_WORD}={_WORD})*)?"
"""The pattern of what `parse_labels` accepts, but for repeated keys."""

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement on one label.

    Args:
        key: of the label.
        values: the values that are meant, sorted; empty: any.
        negated: whether the label must not have one of them.
    """

    key: str
    values: tuple[str, ...] = ()
    negated: bool = False

    def __str__(self) -> str:
        if not self.values:
            return self.key
        return f"{self.key}{'!=' if self.negated else '='}{'|'.join(self.values)}"

    def is_met_by(self, labels: Labels) -> bool:
        """Whether a node with these labels meets it."""
        value = labels.get(self.key)
        if not self.values:
            return value is not None
        return (value in self.values) is not self.negated


Selector = tuple[Requirement, ...]
"""Requirements of which all have to be met; empty: every node is meant."""
EVERY_NODE: Selector = ()


def parse_labels(text: str) -> tuple[tuple[str, str], ...]:
    """Labels with commas between, sorted by key; an empty text has none.

    Raises:
        ValueError: it has another form, or a key occurs twice.
    """
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        label = _LABEL.fullmatch(part)
        if label is None:
            raise ValueError(f"{part!r} is no label: write {LABEL_WORDS}")
        key, value = label.groups()
        if key in found:
            raise ValueError(f"label {key} occurs twice")
        found[key] = value
    return tuple(sorted(found.items()))


def parse_selector(text: str) -> Selector:
    """Requirements with commas between, sorted.

    Raises:
        ValueError: it has another form, is empty, or no node can meet it.
    """
    found = {_requirement(part.strip()) for part in text.split(",")}
    _check_possible(found)
    return tuple(sorted(found, key=str))


def format_selector(selector: Selector) -> str:
    """The text of a selector, as `parse_selector` reads it; empty for every node."""
    return ",".join(map(str, selector))


def selects(selector: Selector, labels: Labels) -> bool:
    """Whether a node with these labels meets all requirements."""
    return all(requirement.is_met_by(labels) for requirement in selector)


def _requirement(text: str) -> Requirement:
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} selects no nodes: write {SELECTOR_WORDS}")
    key, sign, values = found.groups()
    if values is None:
        return Requirement(key)
    return Requirement(key, tuple(sorted(set(values.split("|")))), negated=sign == "!=")


def _check_possible(requirements: set[Requirement]) -> None:
    """A label has one value: requirements on one key may exclude each other."""
    for key in sorted({requirement.key for requirement in requirements}):
        of_key = [one for one in requirements if one.key == key]
        wanted = [set(one.values) for one in of_key if one.values and not one.negated]
        excluded = {value for one in of_key if one.negated for value in one.values}
        if wanted and not set.intersection(*wanted) - excluded:
            both = " and ".join(sorted(map(str, of_key)))
            raise ValueError(f"no node can have both {both}")

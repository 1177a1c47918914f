"""A document's tree as YAML text that `yaml_reader` reads back as the same tree."""

from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from pipeline.network.yaml_reader import YamlList, YamlNode, YamlScalar

WIDTH = 100
"""Where a line of several short values ends; a text is never broken."""

_INDENT = 2
_BREAKS = frozenset("\x85\u2028\u2029")
"""Ends of lines to YAML, and so kept only where they are written as escapes."""
_NULL_TAG = "tag:yaml.org,2002:null"
_TEXT_TAG = "tag:yaml.org,2002:str"
_RESOLVER: Any = Resolver()
"""PyYAML's own rules for what a text without quotes means; they have no types."""


def write(tree: YamlNode) -> str:
    """The YAML text of a tree. Ends with a line feed.

    The top of the document and what is long stands in lines of its own, what is short in one:
    `moving: {filter: sightings, where: speed > 0}`.
    """
    # A text is not to be broken anywhere, since a reader would see line ends that nobody wrote.
    endless = 10 * sum(map(len, _texts(tree))) + WIDTH
    return yaml.serialize(_node(tree, 0), Dumper=yaml.SafeDumper, allow_unicode=True, width=endless)


def _node(node: YamlNode, depth: int) -> Node:
    if isinstance(node, YamlScalar):
        return _scalar(node)
    inline = depth > 1 and _fits(node, depth)
    if isinstance(node, YamlList):
        items = [_node(item, depth + 1) for item in node.items]
        return SequenceNode("tag:yaml.org,2002:seq", items, flow_style=inline)
    entries = [(_scalar(key), _node(value, depth + 1)) for key, value in node.entries]
    return MappingNode("tag:yaml.org,2002:map", entries, flow_style=inline)


def _scalar(node: YamlScalar) -> ScalarNode:
    """A text is quoted only where it would be read as nothing, or as something else than text."""
    tag = str(_RESOLVER.resolve(ScalarNode, node.text, (True, False)))
    if node.null:
        return ScalarNode(_NULL_TAG, "null")
    if _BREAKS & set(node.text):
        return ScalarNode(_TEXT_TAG, node.text, style='"')
    # The reader takes `true`, `5` and times as they are written: none of them needs quotes.
    return ScalarNode(_TEXT_TAG if tag == _NULL_TAG else tag, node.text)


def _fits(node: YamlNode, depth: int) -> bool:
    """Whether a mapping or list may stand in one line, behind a key of some length."""
    texts = _texts(node)
    return not any("\n" in text for text in texts) and (
        sum(len(text) + 2 for text in texts) < WIDTH - 20 - _INDENT * depth
    )


def _texts(node: YamlNode) -> list[str]:
    """Every key and value in a tree."""
    if isinstance(node, YamlScalar):
        return [node.text]
    if isinstance(node, YamlList):
        return [text for item in node.items for text in _texts(item)]
    return [text for key, value in node.entries for text in (key.text, *_texts(value))]

"""A document's tree as YAML text that `yaml_reader` reads back as the same tree."""

from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from pipeline.yaml_reader import YamlList, YamlNode, YamlScalar

WIDTH = 100
"""Line length up to which several short values share a line; a text is never broken."""

_INDENT = 2
_BREAKS = frozenset("\x85\u2028\u2029")
"""Line ends of YAML, which are preserved only as escapes."""
_NULL_TAG = "tag:yaml.org,2002:null"
_TEXT_TAG = "tag:yaml.org,2002:str"
_RESOLVER: Any = Resolver()
"""PyYAML's own rules for the type of a text without quotes; they are untyped."""


def write(tree: YamlNode) -> str:
    """The YAML text of a tree. Ends with a line feed.

    The top level and long nodes are written in block style, short ones in flow style:
    `moving: {filter: sightings, where: speed > 0}`.
    """
    # A text must not be broken anywhere: a reader would see line ends that were not written.
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
    """A text is quoted only if it would otherwise be read as nothing, or not as text."""
    tag = str(_RESOLVER.resolve(ScalarNode, node.text, (True, False)))
    if node.null:
        return ScalarNode(_NULL_TAG, "null")
    if _BREAKS & set(node.text):
        return ScalarNode(_TEXT_TAG, node.text, style='"')
    # The reader keeps `true`, `5` and times as text: none of them needs quotes.
    return ScalarNode(_TEXT_TAG if tag == _NULL_TAG else tag, node.text)


def _fits(node: YamlNode, depth: int) -> bool:
    """Whether a mapping or list fits in one line, behind a key of some length."""
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

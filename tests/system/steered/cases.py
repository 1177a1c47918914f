"""Fragments of each kind of box, over one, two or four streams of the same records."""

from collections.abc import Container, Iterable
from typing import Final

import pytest
from _pytest.mark.structures import ParameterSet

SCHEMA: Final = """
{"type": "record", "name": "Event", "fields": [
  {"name": "k", "type": "string"},
  {"name": "v", "type": "int"},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
]}
"""
PARTITIONS: Final = 2
_STREAMS: Final = "abcd"
_GROUPED: Final = "by: [k], compute: {n: count(*), total: sum(v)}"
_PAIR: Final = "on: [k], within: 2s"
_BOTH: Final = "{k: left.k, v: left.v, w: right.v, at: left.at}"
_FULL: Final = "{k: 'coalesce(left.k, right.k)', v: left.v, w: right.v}"

GROUPS: Final = {
    "tumbling": f"window: 4s, {_GROUPED}",
    "sliding": f"window: {{size: 6s, slide: 2s}}, {_GROUPED}",
    "session": f"session: {{gap: 2s, longest: 20s}}, {_GROUPED}",
}
JOINS: Final = {
    "inner": f"join: {{left: LEFT, right: RIGHT, {_PAIR}, how: inner}}, select: {_BOTH}",
    "left": f"join: {{left: LEFT, right: RIGHT, {_PAIR}, how: left}}, select: {_BOTH}",
    "full": f"join: {{left: LEFT, right: RIGHT, {_PAIR}, how: full}}, select: {_FULL}",
    "as_of": f"as_of: {{left: LEFT, right: RIGHT, on: [k], within: 30s, how: left}}, "
    f"select: {_BOTH}",
}


def document(kind: str, sources: int, name: str) -> str:
    """A network of one fragment.

    Args:
        kind: a key of `GROUPS` or `JOINS`, or `top`, `deduplicate`, `map`.
        sources: number of its streams: 1, 2 or 4.
        name: of the network, and the beginning of the names of its topics.
    """
    streams = [
        f"  {letter}: {{topic: {name}-{letter}, partitions: {PARTITIONS}, schema: event.avsc, "
        "event_time: at, lateness: 0s}"
        for letter in _STREAMS[:sources]
    ]
    boxes, left, right = _inputs(sources)
    boxes.append(f"  out: {{{_box(kind, left, right)}}}")
    outputs = f"outputs: {{out: {{topic: {name}-out}}}}"
    return "\n".join([f"network: {name}", "streams:", *streams, "boxes:", *boxes, outputs])


def is_possible(kind: str, sources: int) -> bool:
    """Whether a kind can read this number of streams."""
    return sources > 1 if kind in JOINS else True


def of_tiers(
    first_tier: Container[tuple[str, int]], second: pytest.MarkDecorator, kinds: Iterable[str]
) -> list[ParameterSet]:
    """Parameters of a test: each kind over one, two and four streams, if it can read so many.

    Args:
        first_tier: those that `make test` runs, too.
        second: marks the others.
        kinds: the kinds.
    """
    return [
        pytest.param(kind, sources, marks=[] if (kind, sources) in first_tier else [second])
        for kind in kinds
        for sources in (1, 2, 4)
        if is_possible(kind, sources)
    ]


def _inputs(sources: int) -> tuple[list[str], str, str]:
    """Boxes that unite streams, and what the stateful box reads left and right."""
    match sources:
        case 1:
            return [], "a", "a"
        case 2:
            return ["  both: {union: [a, b]}"], "a", "b"
        case _:
            one, two = "  ab: {union: [a, b]}", "  cd: {union: [c, d]}"
            return [one, two, "  both: {union: [a, b, c, d]}"], "ab", "cd"


def _box(kind: str, left: str, right: str) -> str:
    one = left if left == right else "both"
    if kind in GROUPS:
        return f"aggregate: {one}, {GROUPS[kind]}"
    if kind in JOINS:
        return JOINS[kind].replace("LEFT", left).replace("RIGHT", right)
    match kind:
        case "top":
            return f"top: {one}, rows: 2, highest: v, window: 4s, by: [k]"
        case "deduplicate":
            return f"deduplicate: {one}, by: [k, v], within: 4s"
        case _:
            return f"map: {one}, select: {{k: k, v: v + 1, at: at}}"


STATEFUL: Final = (*GROUPS, *JOINS, "top", "deduplicate")
KINDS: Final = (*STATEFUL, "map")

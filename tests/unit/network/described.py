"""Boxes as lines of a document, over two streams: one of sightings and one with other types."""

import json
from collections.abc import Callable

from pipeline.network.model import Box

HEAD = """\
network: n
streams:
  s: {topic: cars, schema: s.avsc, event_time: seen_at}
  o: {topic: odd, schema: odd.avsc, event_time: at}
boxes:
"""
ITEM = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "name", "type": "string"},
        {"name": "price", "type": ["null", "long"]},
    ],
}
ODD = json.dumps(
    {
        "type": "record",
        "name": "Odd",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "car", "type": ["null", "string"]},
            {"name": "segment", "type": "long"},
            {"name": "mixed", "type": ["int", "string"]},
            {"name": "tags", "type": {"type": "map", "values": "string"}},
            {"name": "sizes", "type": {"type": "array", "items": ["null", "int"]}},
            {"name": "items", "type": ["null", {"type": "array", "items": ITEM}]},
        ],
    }
)
SCHEMAS = {"odd.avsc": ODD}
CODE = "def classify(batch):\n    return batch\n"

BoxOf = Callable[[str], Box]
ErrorsOf = Callable[[str], list[str]]
ProblemsOf = Callable[..., list[str]]


def column_texts(box: Box) -> list[str]:
    """The columns of a box."""
    return [str(column) for column in box.columns]

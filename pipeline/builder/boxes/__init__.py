"""The kinds of boxes, one file and one function each; a new kind adds one and a line here."""

from pipeline.builder.boxes.aggregate import aggregate
from pipeline.builder.boxes.as_of import as_of
from pipeline.builder.boxes.deduplicate import deduplicate
from pipeline.builder.boxes.filter import filter  # noqa: A004 - a kind, not the built-in
from pipeline.builder.boxes.flat_map import flat_map
from pipeline.builder.boxes.join import join
from pipeline.builder.boxes.map import map  # noqa: A004 - a kind, not the built-in
from pipeline.builder.boxes.python import python
from pipeline.builder.boxes.route import route
from pipeline.builder.boxes.top import top
from pipeline.builder.boxes.union import union

__all__ = [
    "aggregate",
    "as_of",
    "deduplicate",
    "filter",
    "flat_map",
    "join",
    "map",
    "python",
    "route",
    "top",
    "union",
]

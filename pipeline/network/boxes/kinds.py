"""The kinds of boxes. A new kind is one file here and one row in this table."""

from collections.abc import Callable, Mapping

from pipeline.ids import BoxName
from pipeline.network.boxes import (
    aggregate,
    as_of,
    deduplicate,
    filter,  # noqa: A004 - a kind, not the built-in
    flat_map,
    join,
    map,  # noqa: A004 - a kind, not the built-in
    python,
    route,
    top,
    union,
)
from pipeline.network.boxes.common import Defaults, Draft
from pipeline.network.fields import Fields

KINDS: Mapping[str, Callable[[BoxName, Fields, Defaults], Draft | None]] = {
    filter.Filter.kind: filter.read,
    map.Map.kind: map.read,
    flat_map.FlatMap.kind: flat_map.read,
    aggregate.Aggregate.kind: aggregate.read,
    join.Join.kind: join.read,
    as_of.AsOf.kind: as_of.read,
    top.Top.kind: top.read,
    union.Union.kind: union.read,
    python.Python.kind: python.read,
    route.Route.kind: route.read,
    deduplicate.Deduplicate.kind: deduplicate.read,
}
"""The word in the document → how such a box is read."""

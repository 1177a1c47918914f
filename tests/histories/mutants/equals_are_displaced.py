"""A fragment takes the place of one of its own priority."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.catalog import placing
from pipeline.catalog.loads import Placeable
from tests.histories.replaced import replaced

KINDS = "crowd"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Not only a lower priority gives its place up."""

    def yields(other: Placeable, one: Placeable) -> bool:
        return other.record.priority.order >= one.record.priority.order

    with replaced(placing, "_yields", yields):
        yield

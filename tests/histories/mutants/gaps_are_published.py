"""A lane publishes what it computes of a window although it has passed over a part of it."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.spark.batch import verdict
from tests.histories.replaced import replaced

KINDS = "forget,set_back,take_over"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """No result is withheld."""
    with replaced(verdict, "withheld_ms", lambda *_: None):
        yield

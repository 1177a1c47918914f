"""A rebuild counts what the dead letters name."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.spark.run import rebuild
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that show it."""


@contextmanager
def mutated() -> Iterator[None]:
    """No dead letter stands for a record."""
    with replaced(rebuild, "left_out", lambda *_: None):
        yield

"""A batch that is executed again for its state is written again."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.spark.write import sink
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The sink treats no batch as written."""
    with replaced(sink, "is_repeat", lambda _marker, _facts: False):
        yield

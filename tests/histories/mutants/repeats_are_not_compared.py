"""A batch that is executed again for its state may judge its records otherwise than it did."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.spark.write import sink
from tests.histories.replaced import replaced

KINDS = "restart,schema_late"
"""The kinds of steps that show it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The sink finds no difference."""
    with replaced(sink, "judged_otherwise", lambda *_: ""):
        yield

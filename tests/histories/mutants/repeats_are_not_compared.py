"""A batch that is executed again for its state may decide otherwise about its records."""

from collections.abc import Iterator
from contextlib import contextmanager

from pipeline.spark.write import sink
from tests.histories.replaced import replaced

KINDS = "restart,schema_late"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The sink detects no difference."""
    with replaced(sink, "judged_otherwise", lambda *_: ""):
        yield

"""The marker contains that no read record is needed any more."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.lanes import needed
from pipeline.spark.batch import committed
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The needed records start at the end of the batch."""

    def after_batch(shape: Any, log: Any, batch: needed.BatchRead) -> Any:
        found, _ = needed.after_batch(shape, log, batch)
        return found, batch.end

    with replaced(committed, "after_batch", after_batch):
        yield

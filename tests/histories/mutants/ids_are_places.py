"""The id of a result depends on its place in the batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from pipeline.spark.write import result_ids
from tests.histories.replaced import replaced

KINDS = "restart,take_over"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """A repetition numbers its results anew."""
    numbers = count()

    def of(ids: Any, _record: object) -> bytes:
        return f"{ids._cut}/{next(numbers)}".encode()

    with replaced(result_ids.ResultIds, "of", of):
        yield

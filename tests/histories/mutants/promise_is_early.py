"""A lane's promise is above its published results."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.boundaries.promise import promise
from pipeline.ids import Millis
from pipeline.spark.batch import verdict
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Every promise is five seconds too high."""

    def early(shape: Any, **said: Any) -> Millis | None:
        found = promise(shape, **said)
        return None if found is None else Millis(found + 5_000)

    with replaced(verdict, "promise", early):
        yield

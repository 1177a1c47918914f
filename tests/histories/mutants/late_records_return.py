"""A rebuild from an older checkpoint counts records that were late since."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pipeline.spark.run import rebuild_query
from tests.histories.replaced import replaced

KINDS = "set_back,lateness"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Leave nothing out after a checkpoint."""
    execute = rebuild_query.RebuildQuery.execute

    def with_all(self: Any, todo: Any, *more: Any) -> Any:
        if todo.start.since is not None:
            todo = replace(todo, left_out=())
        return execute(self, todo, *more)

    with replaced(rebuild_query.RebuildQuery, "execute", with_all):
        yield

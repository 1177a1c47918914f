"""A lane starts while the one whose place it takes still runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.agent import decide
from tests.histories.replaced import replaced

KINDS = "crowd,priority"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """No node is full."""

    def with_room(state: Any) -> Any:
        return state.shared

    with replaced(decide, "_with_room", with_room):
        yield

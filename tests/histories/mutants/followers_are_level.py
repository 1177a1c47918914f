"""A lane takes the state of a follower for that of the last marker, which it may be behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pipeline.lanes.start import decision
from tests.histories.replaced import replaced

KINDS = "reliability,suspect"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """The positions and the watermark of the state are those of the marker."""
    followed = decision._followed

    def level(marker: Any, checkpoint: Any, request: Any) -> Any:
        state = followed(marker, checkpoint, request)
        if state is None:
            return None
        return replace(state, end=marker.end, watermark_ms=marker.eviction_ms)

    with replaced(decision, "_followed", level):
        yield

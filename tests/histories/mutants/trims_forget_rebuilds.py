"""What a reader has read is removed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pipeline.lanes.needed_by_readers import needed
from pipeline.trimming import by_need
from tests.histories.replaced import replaced

KINDS = "trim,restart,take_over"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """A state is taken for something that is never lost."""

    def of_batches(topic_id: str, partitions: int, readers: Any) -> Any:
        found = [
            replace(one, marker=replace(one.marker, needed=one.marker.end)) if one.marker else one
            for one in readers
        ]
        return needed(topic_id, partitions, found)

    with replaced(by_need, "needed", of_batches):
        yield

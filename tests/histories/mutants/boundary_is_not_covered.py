"""A boundary of a derived input counts before the lane has read up to its positions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.boundaries import lane_time
from pipeline.ids import Offset
from tests.histories.replaced import replaced

KINDS = "restart"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Each batch is planned as if it read all that there will ever be."""
    target_after = lane_time.target_after

    def uncovered(time: Any, read_to: Any, ends: Any, now_ms: Any) -> Any:
        return target_after(time, dict.fromkeys(read_to, Offset(1 << 60)), ends, now_ms)

    with replaced(lane_time, "target_after", uncovered):
        yield

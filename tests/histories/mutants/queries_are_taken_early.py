"""A lane takes the query of a follower over that has not repeated every batch yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pipeline.lanes.start.facts import CommittedState
from pipeline.spark.run.handover import Handover
from tests.histories.replaced import replaced

KINDS = "reliability,suspect"
"""The kinds of steps that detect it."""


@contextmanager
def mutated() -> Iterator[None]:
    """Neither of them compares positions with the last marker."""

    def is_wanted(handover: Any, _at: Any) -> bool:
        return handover._wanted is not None

    with (
        replaced(Handover, "is_due", is_wanted),
        replaced(CommittedState, "is_at", lambda *_: True),
    ):
        yield

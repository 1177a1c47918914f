"""How the slow steps here tell how far they are; the caller decides how to show it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Where a slow operation stands. `total` is 0 while it is not known."""

    what: str
    done: int = 0
    total: int = 0


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """For callers that show nothing."""
    del step

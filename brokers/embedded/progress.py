"""Progress of slow operations, reported to a callback of the caller."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """Progress of a slow operation. `total` is 0 while it is unknown."""

    what: str
    done: int = 0
    total: int = 0


Progress = Callable[[Step], None]


def silent(step: Step) -> None:
    """A callback that ignores progress."""
    del step

"""How many dead letters there were, as a marker keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """The dead letters of one stream or box, counted in windows.

    Args:
        within_ms: the size of the windows; None: all of time is one, number 0.
        windows: how many there were, by the window's number: its start in units of its size.
    """

    within_ms: int | None
    windows: Mapping[int, int]

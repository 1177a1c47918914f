"""Counts of dead letters in a commit marker."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refused:
    """The dead letters of one stream or box, counted in windows.

    Args:
        within_ms: the size of the windows; None: one window, number 0, contains all time.
        windows: number of dead letters by window number: its start in units of its size.
    """

    within_ms: int | None
    windows: Mapping[int, int]

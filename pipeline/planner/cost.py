"""Estimated cost of a fragment, in microseconds of processor time for each record that it reads.

The figures are those of `benchmarks/README.md`, on one machine and with few columns: they say how
fragments compare, not how long one takes.
"""

from collections.abc import Mapping
from types import MappingProxyType

from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.model import Box
from pipeline.planner.plan import Fragment

READ_AND_WRITE_US = 5
SESSIONS_US = 40
COSTS_US: Mapping[str, int] = MappingProxyType(
    {
        "aggregate": 4,
        "as_of": 56,
        "branch": 0,
        "deduplicate": 288,
        "filter": 0,
        "flat_map": 1,
        "join": 72,
        "map": 1,
        "python": 3,
        "route": 1,
        "top": 1,
        "union": 0,
    }
)
"""What a box of each kind costs beyond reading, decoding, encoding and writing a record."""


def estimated_cost_us(fragment: Fragment) -> int:
    """The estimated cost of a fragment."""
    return READ_AND_WRITE_US + sum(map(_cost_us, fragment.boxes))


def _cost_us(box: Box) -> int:
    sessions = isinstance(getattr(box, "window", None), SessionWindow)
    return SESSIONS_US if sessions else COSTS_US[box.kind]

"""Priority of a fragment: which ones run while the nodes have too little room for all of them."""

from collections.abc import Iterable
from enum import Enum


class Priority(Enum):
    """The highest is the first."""

    HIGH = "high"
    NORMAL = "normal"
    """The default."""
    LOW = "low"

    @property
    def order(self) -> int:
        """Its place in the order of fragments; the smallest is the first."""
        return _ORDER.index(self)


_ORDER = tuple(Priority)


def highest(those: Iterable[Priority], default: Priority) -> Priority:
    """The highest one; `default`: of none at all."""
    return min(those, key=lambda one: one.order, default=default)

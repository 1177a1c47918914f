"""Connection limits: decision on each new connection."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

OVERLOADED_MAX: Final = 64
_FILES_PER_SERVED = 2
_FILES_PER_OVERLOADED = 8


class Admission(Enum):
    """Decision on a new connection."""

    SERVED = auto()
    OVERLOADED = auto()
    """Its first request is answered with 503, then it is closed."""
    CLOSED = auto()


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of open connections.

    Args:
        served: connections whose requests are answered.
        overloaded: further ones, which are answered with 503.
    """

    served: int
    overloaded: int

    def admit(self, served: int, overloaded: int) -> Admission:
        """Decide on a new connection; the arguments are the numbers of open ones.

        >>> ConnectionLimits(served=2, overloaded=1).admit(served=2, overloaded=0).name
        'OVERLOADED'
        """
        if served < self.served:
            return Admission.SERVED
        return Admission.OVERLOADED if overloaded < self.overloaded else Admission.CLOSED


def connection_limits(connections_max: int, files_max: int) -> ConnectionLimits:
    """Limits for a process with a limit of open files.

    Served connections use at most half of the files: the process needs others, too.

    >>> connection_limits(512, files_max=256)
    ConnectionLimits(served=128, overloaded=32)
    """
    served = max(1, min(connections_max, files_max // _FILES_PER_SERVED))
    overloaded = max(1, min(OVERLOADED_MAX, files_max // _FILES_PER_OVERLOADED))
    return ConnectionLimits(served, overloaded)

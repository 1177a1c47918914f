"""How many connections there is room for, and what becomes of one more."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

TOLD_MAX: Final = 64
_OF_THE_FILES = 2
_TOLD_OF_THE_FILES = 8


class Entry(Enum):
    """What becomes of a connection."""

    SERVED = auto()
    TOLD = auto()
    """Its first request is answered with 503, then it is closed."""
    SHUT_OUT = auto()


@dataclass(frozen=True, slots=True)
class Room:
    """How many connections may be open.

    Args:
        served: those whose requests are answered.
        told: further ones, that hear that there are too many.
    """

    served: int
    told: int

    def entry(self, served: int, told: int) -> Entry:
        """What becomes of one more, beside those that are open.

        >>> Room(served=2, told=1).entry(served=2, told=0).name
        'TOLD'
        """
        if served < self.served:
            return Entry.SERVED
        return Entry.TOLD if told < self.told else Entry.SHUT_OUT


def room_for(connections_max: int, files_max: int) -> Room:
    """Room for so many connections, in a process that may have so many files open.

    They take at most half of the files: the process needs others, too.

    >>> room_for(512, files_max=256)
    Room(served=128, told=32)
    """
    served = max(1, min(connections_max, files_max // _OF_THE_FILES))
    told = max(1, min(TOLD_MAX, files_max // _TOLD_OF_THE_FILES))
    return Room(served, told)

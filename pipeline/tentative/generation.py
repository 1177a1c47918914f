"""Generation: all results of one fork, as `EPOCH.NUMBER`."""

import re
from dataclasses import dataclass

from pipeline.ids import Epoch

_TEXT = re.compile(rb"([1-9][0-9]{0,18})\.([1-9][0-9]{0,18})")


@dataclass(frozen=True, slots=True, order=True)
class Generation:
    """The results of one fork; a later one has more to go by, so the order is that of the forks.

    Args:
        epoch: of the owner that ran the fork.
        number: counted by the lane, from 1 in each epoch.
    """

    epoch: Epoch
    number: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.number}"

    def encode(self) -> bytes:
        """As the value of a header."""
        return str(self).encode()


def read(text: bytes | None) -> Generation | None:
    """Read a generation from a header; None: it is damaged."""
    found = _TEXT.fullmatch(text or b"")
    return found and Generation(Epoch(int(found[1])), int(found[2]))


def following(newest: Generation | None, epoch: Epoch) -> Generation:
    """The generation of the next fork: newer than all others, else its results would not count.

    Another fragment, whose epochs were higher, may have written the output before.

    Args:
        newest: the newest one that is known, of any epoch.
        epoch: of the owner that begins the fork.
    """
    if newest is None or newest.epoch < epoch:
        return Generation(epoch, 1)
    return Generation(newest.epoch, newest.number + 1)

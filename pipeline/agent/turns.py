"""A priority semaphore: how many followers of a node build their states at the same time.

Of those that wait the one of the lowest rank is the next. Thread-safe.
"""

import threading
from collections.abc import Callable
from typing import Final

from pipeline.agent.effects import Following
from pipeline.ids import FragmentId

Rank = tuple[int, bool, FragmentId]
"""The order of priorities; of one priority moves before secondaries; then by name."""
_POLL_S: Final = 1.0


def rank_of(one: Following) -> Rank:
    """The rank of a follower."""
    record = one.deployed.record
    return record.priority.order, one.transfer is None, one.deployed.id


class Turns:
    """Permits to build a state.

    Args:
        at_once: how many there are.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: list[Rank] = []
        self._changed = threading.Condition()

    def take(self, rank: Rank, is_over: Callable[[], bool]) -> bool:
        """Wait for a permit.

        Args:
            rank: of who waits.
            is_over: whether the wait is to end without one; called about once a second.

        Returns:
            Whether there is a permit, to be given back.
        """
        with self._changed:
            self._waiting.append(rank)
        try:
            while not is_over():  # without the lock: it may ask a server
                if self._is_given(rank):
                    return True
            return False
        finally:
            with self._changed:
                self._waiting.remove(rank)
                self._changed.notify_all()

    def _is_given(self, rank: Rank) -> bool:
        """Take a permit if it is this one's turn; else wait for a change, a second at most."""
        with self._changed:
            if not self._free or rank != min(self._waiting):
                self._changed.wait(_POLL_S)
                return False
            self._free -= 1
            return True

    def give_back(self) -> None:
        """Give a permit back."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

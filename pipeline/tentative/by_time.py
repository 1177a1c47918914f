"""Values by result id, which are removed in the order of event time."""

import heapq
from typing import Final, Generic, TypeVar

from pipeline.ids import Millis

MOST_OPEN: Final = 1_000_000
"""The most results of one output that may be tentative, and neither stable nor undone."""

Value = TypeVar("Value")


class ByTime(Generic[Value]):
    """Values by id, each with an event time; those up to a time are removed together."""

    def __init__(self) -> None:
        self._found: dict[bytes, tuple[Millis, Value]] = {}
        # Has at least one entry for each id and its time. Entries of removed ids are dropped when
        # their time comes.
        self._times: list[tuple[Millis, bytes]] = []

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, result_id: bytes) -> bool:
        return result_id in self._found

    def get(self, result_id: bytes) -> Value | None:
        """The value of an id; None: it has none."""
        found = self._found.get(result_id)
        return None if found is None else found[1]

    def put(self, result_id: bytes, time_ms: Millis, value: Value) -> None:
        """Set the value of an id, and its time."""
        before = self._found.get(result_id)
        self._found[result_id] = (time_ms, value)
        if before is None or before[0] != time_ms:
            heapq.heappush(self._times, (time_ms, result_id))

    def pop(self, result_id: bytes) -> Value | None:
        """Remove an id; returns its value, or None."""
        found = self._found.pop(result_id, None)
        return None if found is None else found[1]

    def take_to(self, time_ms: Millis) -> list[Value]:
        """Remove all ids up to a time; returns their values by time, then by id."""
        taken = []
        while self._times and self._times[0][0] <= time_ms:
            at_ms, result_id = heapq.heappop(self._times)
            found = self._found.get(result_id)
            if found is not None and found[0] == at_ms:
                del self._found[result_id]
                taken.append(found[1])
        return taken

    @property
    def first_ms(self) -> Millis | None:
        """The first of the times; None: there is no id."""
        while self._times:
            at_ms, result_id = self._times[0]
            found = self._found.get(result_id)
            if found is not None and found[0] == at_ms:
                return at_ms
            heapq.heappop(self._times)
        return None

    def clear(self) -> Millis | None:
        """Remove all ids; returns the last of their times."""
        last_ms = max((time_ms for time_ms, _ in self._found.values()), default=None)
        self._found.clear()
        self._times.clear()
        return last_ms


def is_above(time_ms: Millis | None, limit_ms: Millis | None) -> bool:
    """Whether a time is above a limit, if there is one; no time is above none."""
    return time_ms is not None and (limit_ms is None or time_ms > limit_ms)


def later(time_ms: Millis, other_ms: Millis | None) -> Millis:
    """The later of two times, of which one may be missing."""
    return time_ms if other_ms is None else max(time_ms, other_ms)

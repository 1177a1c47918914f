"""Publishing: which results of a fork are published after a batch, and how far these are complete.

A box that waits releases results by event time, so what its fork computes before the deadline is
what the stable lane computes. Another one makes results of each record that it reads: of those only
what is made of tentative records is tentative. They may be held until event time has passed them,
so that they come in its order.
"""

from collections.abc import Iterable

from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.tentative.by_time import MOST_OPEN
from pipeline.tentative.records import TentativeResult


class Publishing:
    """State of what one fork publishes.

    Args:
        waits: whether its results wait for event time.
        most: how many of them are held.
    """

    def __init__(self, *, waits: bool, most: int = MOST_OPEN) -> None:
        self._waits = waits
        self._most = most
        self._held: list[TentativeResult] = []
        self.begins_ms: Millis | None = None
        """Above this event time its results are complete; None: nothing is published yet."""

    def early(self, boundary_ms: Millis | None) -> None:
        """Take in a batch before the deadline, whose results the stable lane has as well."""
        if self._waits:
            self.begins_ms = boundary_ms

    def due(
        self, made: Iterable[TentativeResult], limit_ms: Millis | None, cut_ms: Millis | None
    ) -> list[TentativeResult]:
        """The results that are published after a batch, in the order of event time.

        Args:
            made: of the batch.
            limit_ms: later results are held; None: none are.
            cut_ms: the event time after which it reads tentative records; None: it reads none.

        Raises:
            RefusedError: too many are held.
        """
        if not self._waits and cut_ms is None:
            return []
        if not self._waits:
            self.begins_ms = cut_ms
        if not made and limit_ms is not None and self._holds_later_than(limit_ms):
            return []
        found = sorted((*self._held, *made), key=lambda one: one.timestamp_ms)
        if limit_ms is None:
            self._held = []
            return found
        self._held = [one for one in found if one.timestamp_ms > limit_ms]
        if len(self._held) > self._most:
            raise RefusedError(
                f"{len(self._held)} tentative results wait for event time: more than {self._most}",
                hint="stable results are not affected; the fork is begun again later",
            )
        return found[: len(found) - len(self._held)]

    def _holds_later_than(self, limit_ms: int) -> bool:
        """Whether all held results, of which the first is the earliest, are later."""
        return not self._held or self._held[0].timestamp_ms > limit_ms

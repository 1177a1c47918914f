"""The markers of an owner that its follower has not repeated yet."""

from typing import Final, NoReturn

from pipeline.errors import BrokenInvariantError
from pipeline.lanes.following import (
    Grow,
    Hole,
    Lost,
    NotToFollowError,
    PassOver,
    Repeat,
    cannot_reach,
    follow,
    repeats,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.marker_tail import MarkerTail

POLL_S: Final = 0.05
FAR_MS: Final = 3_000
"""A follower is level with its owner when that has written what is left in less time. Both times
are of the owner's clock: those of two machines are never compared."""
FAR_BATCHES: Final = 5
"""It is far behind when it would have to execute more batches, written in a longer time: to read
what is missing at once takes two new queries."""


class FollowerMarkers:
    """The marker whose state a follower has, and those after it. Not thread-safe.

    Args:
        place: names the fragment.
    """

    def __init__(self, place: str) -> None:
        self._place = place
        self._waiting: list[CommitMarker] = []
        self._planned: Repeat | None = None
        self.at: CommitMarker | None = None
        """The marker whose state the follower has; None: it has no state."""
        self.has_grown = False
        """Whether the query has to read more partitions before the next batch."""
        self.has_hole = False
        """Whether markers are missing before the next batch, which has to be read with them."""
        self.is_whole = True
        """Whether another follower may begin from the state; False: it is lost."""

    @property
    def running(self) -> CommitMarker:
        """The marker whose state the follower has."""
        if self.at is None:
            raise NotToFollowError("nothing is followed yet", place=self._place)
        return self.at

    @property
    def planned(self) -> CommitMarker:
        """What is expected of the batch that is executed."""
        if self._planned is None:
            raise BrokenInvariantError("a follower executes a batch that was not planned")
        return self._planned.marker

    def built(self, marker: CommitMarker) -> None:
        """Note that the state is that of a marker."""
        self.at, self.is_whole = marker, True
        self.has_grown = self.has_hole = False

    def repeated(self) -> None:
        """Note that the planned batch was executed."""
        if self._planned is None:
            raise BrokenInvariantError("a follower has executed a batch that was not planned")
        number = self._planned.number
        self.at = self._waiting[number - 1]
        del self._waiting[:number]

    def poll(self, tail: MarkerTail, within_s: float = 0.0) -> None:
        """Read what was written."""
        self._waiting.extend(tail.next(0.0 if self._waiting else within_s))

    def is_near(self, tail: MarkerTail) -> bool:
        """Whether at most one marker waits, or the owner has written all that wait in a short time.

        Markers that were not read yet count as many, and so do those that compaction has removed.
        """
        at, number = self.running, len(self._waiting)
        few = number == 0 or (number == 1 and self._waiting[0].batch <= at.batch + 1)
        return (few or self._waits_ms(at) <= FAR_MS) and tail.is_at_end

    def _waits_ms(self, since: CommitMarker) -> int:
        """In which time the owner has written what waits since a marker; at least that.

        An owner whose clock was set back, or that has another one than the owner before, has
        written it in that time at most.
        """
        return abs(self._waiting[-1].written_at_ms - since.written_at_ms)

    def next(self, tail: MarkerTail, most: int, *, runs: bool) -> CommitMarker | None:
        """What is expected of the next batch; its markers wait until it is executed.

        Args:
            tail: reads the markers.
            most: maximum number of records in a batch.
            runs: whether a query runs; then there is none if it has to read more partitions.

        Returns:
            None, too, if markers are missing; then `newest` goes on.

        Raises:
            NotToFollowError: the next marker does not follow.
        """
        if not self._waiting:
            self.poll(tail, POLL_S)
        while self._waiting:
            match follow(self.running, self._waiting, most):
                case Repeat() as found:
                    self._planned = found
                    return found.marker
                case PassOver(marker):
                    self.at = marker
                    del self._waiting[0]
                case Grow(at):
                    self.at, self.has_grown = at, True
                    if runs:
                        return None
                case Hole():
                    self.has_hole = True
                    return None
                case Lost(why, is_whole):
                    self._lose(why, is_whole=is_whole)
        return None

    @property
    def is_empty(self) -> bool:
        """Whether none waits that was read."""
        return not self._waiting

    def is_far_behind(self, tail: MarkerTail, most: int) -> bool:
        """Whether many batches wait, which the owner has written in a long time."""
        if not self._waiting:
            self.poll(tail, POLL_S)
        if len(self._waiting) <= FAR_BATCHES or self._waits_ms(self._waiting[0]) <= FAR_MS:
            return False
        return repeats(self.running, self._waiting, most) > FAR_BATCHES

    def newest(self) -> CommitMarker:
        """The last marker that waits, and to which the state can be brought; later ones still wait.

        One that begins an incarnation is passed over by itself.

        Raises:
            NotToFollowError: it cannot be brought there.
        """
        judged = [place for place, one in enumerate(self._waiting, 1) if one.judged is not None]
        number = judged[-1] if judged else len(self._waiting)
        reached = self._waiting[:number]
        if why := cannot_reach(self.running, reached):
            self._lose(why, is_whole=all(self.running.batch <= one.batch for one in reached))
        del self._waiting[:number]
        return reached[-1]

    def _lose(self, why: str, *, is_whole: bool) -> NoReturn:
        """Give up: the markers do not follow."""
        self.is_whole = is_whole
        raise NotToFollowError(why, place=self._place)

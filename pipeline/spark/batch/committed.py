"""What a lane has committed: its last marker, and from where on a rebuild would read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.ids import Epoch, Millis, Offset
from pipeline.lanes.batch import next_marker, passed_on
from pipeline.lanes.needed import BatchRead, NeededLog, after_batch, resume
from pipeline.lanes.needed_letters import (
    DeadLetterSpan,
    after_dead_letters,
    resume_dead_letters,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.cut import Cut
from pipeline.network.boxes.shape import Shape
from pipeline.spark.batch.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a marker contains of the time and the place of its writing.

    Args:
        epoch: of the lane.
        letters: the span of the batch's dead letters, if a rebuild may need them.
        output_ends: acknowledged ends of the output.
        now_ms: wall time.
    """

    epoch: Epoch
    letters: DeadLetterSpan | None
    output_ends: Mapping[int, Offset]
    now_ms: Millis


@dataclass(frozen=True, slots=True)
class Committed:
    """The last marker of a lane, with the open spans of its inputs and of its dead letters."""

    marker: CommitMarker
    log: NeededLog
    letters: tuple[DeadLetterSpan, ...]

    @classmethod
    def begun(cls, marker: CommitMarker) -> "Committed":
        """That of a lane that continues from a marker."""
        return cls(marker, resume(marker), resume_dead_letters(marker))

    def after(self, verdict: Verdict, shape: Shape, around: Circumstances) -> "Committed":
        """That after a batch.

        Raises:
            BrokenInvariantError: the batch does not follow on the last marker.
        """
        last, facts = self.marker, verdict.facts
        read = BatchRead(last.end, facts.end, facts.largest, facts.eviction_ms)
        log, needed = after_batch(shape, self.log, read)
        letters = after_dead_letters(self.letters, around.letters, needed)
        marker = next_marker(
            last,
            facts,
            verdict.written,
            epoch=around.epoch,
            needed=needed,
            letters=letters,
            output_ends=around.output_ends,
            boundary_ms=verdict.boundary_ms,
            now_ms=around.now_ms,
        )
        return Committed(marker, log, letters)

    def with_cut(self, cut: Cut) -> "Committed":
        """The same, with the cut of the next batch."""
        last = self.marker
        repeated = tuple(dict.fromkeys((*last.repeated, last.output)))
        return replace(self, marker=replace(last, cut=cut, repeated=repeated))

    def passed_on(self, boundary_ms: Millis, now_ms: Millis) -> "Committed":
        """That after event time was passed on without a batch.

        Raises:
            BrokenInvariantError: the promise would decrease.
        """
        return replace(self, marker=passed_on(self.marker, boundary_ms, now_ms))

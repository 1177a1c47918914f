"""Gap: what a lane with `reliability: amnesia` has left out when it began with an empty state."""

from dataclasses import dataclass

from pipeline.ids import Incarnation, Millis, Offset, TopicName


@dataclass(frozen=True, slots=True)
class Omitted:
    """The records of one partition that were passed over: from an offset up to another one."""

    topic: TopicName
    partition: int
    begin: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap in what a lane has read, and in its results.

    Args:
        incarnation: the one that began after it.
        omitted: the records that were passed over, in the order of their places. Streams are not
            named: they may be renamed.
        since_ms: the promise before it: results at or below are complete; None: there was none.
        newest_ms: no record before the gap's end that counts has a later event time.
        until_ms: results above are complete; none at or below touches records before the end of the
            gap and is published.
        written_at_ms: wall time at which the lane began after it.
    """

    incarnation: Incarnation
    omitted: tuple[Omitted, ...]
    since_ms: Millis | None
    newest_ms: Millis
    until_ms: Millis
    written_at_ms: Millis

    @property
    def offsets(self) -> int:
        """Number of offsets that were passed over; there may be fewer records."""
        return sum(one.end - one.begin for one in self.omitted)

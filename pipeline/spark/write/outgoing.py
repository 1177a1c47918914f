"""What a lane writes at once, and the interface of the ways to write it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pipeline.clock import Deadline
from pipeline.ids import FragmentId, Millis
from pipeline.lanes.dead_letters import DeadLetter
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.batch.results import Results


@dataclass(frozen=True, slots=True)
class Again:
    """Results that may be written again, and get ids by which they are known then.

    Args:
        fragment: that writes them.
        cut: the id of the cut of their batch.
    """

    fragment: FragmentId
    cut: str


@dataclass(frozen=True, slots=True)
class OutgoingResults:
    """Results that are to be written.

    Args:
        results: in the order in which they are written.
        partitions: the number of partitions of their topic.
        late_ms: those up to this event time are marked as late; None: none is.
        again: whether they may be written again; None: they are not.
    """

    results: Results
    partitions: int
    late_ms: Millis | None
    again: Again | None = None


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What is written at once; `results` are None if there is no batch."""

    marker: CommitMarker
    letters: tuple[DeadLetter, ...] = ()
    results: OutgoingResults | None = None


class BatchWriter(Protocol):
    """A way to write: everything becomes visible at once, or nothing does; but see `cuts`."""

    @property
    def cuts(self) -> bool:
        """Whether results become visible first: then the marker before has to have their cut."""

    @property
    def undecided(self) -> bool:
        """Whether the last call of `write` failed, and what it wrote may be visible later."""

    def write(self, outgoing: Outgoing, check: Callable[[], None], deadline: Deadline) -> None:
        """Write it.

        Args:
            outgoing: what is written.
            check: called when everything is written, before it becomes visible; an error from it
                prevents that.
            deadline: of the whole call.

        Raises:
            FencedError: another epoch owns the fragment. RetryError, UnavailableError: nothing
            becomes visible, unless it is `undecided`. RefusedError: a record is too large.
        """

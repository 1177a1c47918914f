"""What a lane does before its query starts: a plan, which its thread carries out step by step."""

from dataclasses import dataclass, field, replace
from typing import assert_never

from pipeline.ids import Incarnation, Millis
from pipeline.lanes.growth import begin_of_all, reassigned
from pipeline.lanes.start.decision import BeginAt, Continue, FirstStart, Rebuild, Start
from pipeline.lanes.start.facts import Wanted
from pipeline.lanes.start.markers import adopted, begun_anew, first_marker, gone_on, rebuilt
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.planner.state import OnChange


@dataclass(frozen=True, slots=True)
class NoCheckpoint:
    """The query makes a new one, and begins at the end positions of the marker."""


@dataclass(frozen=True, slots=True)
class LinkedCheckpoint:
    """The query goes on with the copy that was linked into the folder of the epoch."""


@dataclass(frozen=True, slots=True)
class RebuiltCheckpoint:
    """The state is built from the log first; then the query goes on with what that has made."""

    rebuild: Rebuild


@dataclass(frozen=True, slots=True)
class StartPlan:
    """The steps of a start, in order.

    Args:
        marker: is committed first, under the own epoch.
        checkpoint: then this is made.
        incarnation: the life of the lane that begins with it, if a new one does.
    """

    marker: CommitMarker
    checkpoint: NoCheckpoint | LinkedCheckpoint | RebuiltCheckpoint
    incarnation: Incarnation

    def marker_after(self, done: Rebuild, begin: Positions, wanted: Wanted) -> CommitMarker:
        """The marker that is committed once a rebuild is done.

        Args:
            done: the rebuild as it went in the end.
            begin: from where it has read.
            wanted: the lane.
        """
        return rebuilt(done, begin, wanted, self.incarnation)


@dataclass(frozen=True, slots=True)
class StartFacts:
    """What a plan needs beside the decision.

    Args:
        incarnation: of a life that begins now.
        now_ms: wall time.
        first: where a lane that never ran begins; empty for others.
        held: the marker within what its topics still hold, if somebody chose to go on without what
            they have lost.
        written: the last marker as it was written, in the names of its own plan.
        not_before: where a deploy decided that sources begin.
    """

    incarnation: Incarnation
    now_ms: Millis
    first: Positions = field(default_factory=dict)
    held: CommitMarker | None = None
    written: CommitMarker | None = None
    not_before: Positions = field(default_factory=dict)


def plan_start(start: Start, wanted: Wanted, facts: StartFacts) -> StartPlan:
    """The steps of a start that was decided."""
    incarnation = facts.incarnation
    match start:
        case FirstStart():
            marker = first_marker(wanted, incarnation, facts.first, facts.now_ms)
            return StartPlan(marker, NoCheckpoint(), incarnation)
        case BeginAt(marker):
            marker = begun_anew(_stands_at(marker, wanted, facts), wanted, incarnation)
            return StartPlan(marker, NoCheckpoint(), incarnation)
        case Continue(marker, planned):
            # A batch that is planned already reads the partitions that the marker has.
            marker = marker if planned is not None else reassigned(marker, wanted.positions)
            return StartPlan(gone_on(marker, wanted), LinkedCheckpoint(), incarnation)
        case Rebuild():
            rebuild = _rebuild(start, wanted, facts)
            # As it was written: what is decided here counts once the state is built.
            first = adopted(facts.written or rebuild.marker, wanted)
            return StartPlan(first, RebuiltCheckpoint(rebuild), incarnation)
        case _:
            assert_never(start)


def _stands_at(marker: CommitMarker, wanted: Wanted, facts: StartFacts) -> CommitMarker:
    """The marker for the partitions that there are, and what was chosen to be passed over."""
    return facts.held or reassigned(marker, wanted.positions)


def _rebuild(start: Rebuild, wanted: Wanted, facts: StartFacts) -> Rebuild:
    marker = _stands_at(start.marker, wanted, facts)
    empty = wanted.on_change is OnChange.EMPTY
    begin = marker.end if empty else begin_of_all(start.begin, marker.end)
    return replace(start, marker=marker, begin=begin, not_before=facts.not_before)

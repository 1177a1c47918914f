"""Start plan: the steps of a lane before its query starts, carried out by its thread."""

from dataclasses import dataclass, field, replace
from typing import assert_never

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Incarnation, Millis
from pipeline.lanes.new_partitions import begin_of_all, reassigned
from pipeline.lanes.start.decision import (
    BeginAt,
    Continue,
    FirstStart,
    Rebuild,
    SkipToEnd,
    Start,
)
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import adopted, begun_anew, continued, first_marker, rebuilt
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.planner.state import OnChange


@dataclass(frozen=True, slots=True)
class NoCheckpoint:
    """The query creates a new checkpoint, and begins at the end positions of the marker."""


@dataclass(frozen=True, slots=True)
class LinkedCheckpoint:
    """The query continues the copy that was linked into the folder of the epoch.

    `withdrawn`: the planned batch that is removed from it first; None: there is none.
    """

    withdrawn: BatchId | None = None


@dataclass(frozen=True, slots=True)
class RebuiltCheckpoint:
    """The state is rebuilt from the log first; the query continues from the result."""

    rebuild: Rebuild


@dataclass(frozen=True, slots=True)
class StartPlan:
    """The steps of a start, in order.

    Args:
        marker: committed first, under the lane's epoch.
        checkpoint: made next.
        incarnation: the new incarnation, if one begins.
    """

    marker: CommitMarker
    checkpoint: NoCheckpoint | LinkedCheckpoint | RebuiltCheckpoint
    incarnation: Incarnation

    def marker_after(
        self, done: Rebuild, needed: Positions, batch: BatchId, request: StartRequest
    ) -> CommitMarker:
        """The marker to commit after a rebuild.

        Args:
            done: the rebuild as carried out.
            needed: the oldest positions that its state needs.
            batch: the last one it executed.
            request: the lane.
        """
        return rebuilt(done, needed, batch, request, self.incarnation)


@dataclass(frozen=True, slots=True)
class StartFacts:
    """Inputs of a start plan besides the decision.

    Args:
        incarnation: for a lane that begins anew.
        now_ms: wall time.
        first: begin positions of a first start; empty for others.
        clamped: the marker limited to the present ranges of its topics, if the user chose to
            continue without lost records.
        written: the last marker as written, under the names of its own plan.
        not_before: begins of sources as decided by a deploy.
        after_gap: the marker at the newest offsets, for a lane that skips to them.
    """

    incarnation: Incarnation
    now_ms: Millis
    first: Positions = field(default_factory=dict)
    clamped: CommitMarker | None = None
    written: CommitMarker | None = None
    not_before: Positions = field(default_factory=dict)
    after_gap: CommitMarker | None = None


def plan_start(start: Start, request: StartRequest, facts: StartFacts) -> StartPlan:
    """Compute the steps of a decided start."""
    incarnation = facts.incarnation
    match start:
        case FirstStart():
            marker = first_marker(request, incarnation, facts.first, facts.now_ms)
            return StartPlan(marker, NoCheckpoint(), incarnation)
        case BeginAt(marker):
            marker = begun_anew(_start_marker(marker, request, facts), request, incarnation)
            return StartPlan(marker, NoCheckpoint(), incarnation)
        case Continue(marker, planned, withdrawn):
            # An already planned batch reads the partitions in the marker.
            marker = marker if planned is not None else reassigned(marker, request.positions)
            linked = LinkedCheckpoint(withdrawn)
            return StartPlan(continued(marker, request), linked, incarnation)
        case Rebuild():
            rebuild = _rebuild(start, request, facts)
            # As written: these decisions take effect once the state is rebuilt.
            first = adopted(facts.written or rebuild.marker, request)
            return StartPlan(first, RebuiltCheckpoint(rebuild), incarnation)
        case SkipToEnd():
            rebuild = _empty(start, facts)
            first = adopted(facts.written or start.marker, request)
            return StartPlan(first, RebuiltCheckpoint(rebuild), incarnation)
        case _:
            assert_never(start)


def _start_marker(marker: CommitMarker, request: StartRequest, facts: StartFacts) -> CommitMarker:
    """The marker with the present partitions, or limited to their ranges by choice."""
    return facts.clamped or reassigned(marker, request.positions)


def _empty(start: SkipToEnd, facts: StartFacts) -> Rebuild:
    """A rebuild from no record: an empty state, with the watermark that the lane had in force."""
    marker = facts.after_gap
    if marker is None:
        raise BrokenInvariantError("a lane skips to the newest offsets, and they were not read")
    return Rebuild(marker, marker.end, marker.eviction_ms, start.why)


def _rebuild(start: Rebuild, request: StartRequest, facts: StartFacts) -> Rebuild:
    marker = _start_marker(start.marker, request, facts)
    empty = request.on_change is OnChange.EMPTY
    begin = marker.end if empty else begin_of_all(start.begin, marker.end)
    return replace(start, marker=marker, begin=begin, not_before=facts.not_before)

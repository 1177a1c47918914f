"""Planner of a lane's batches: keeps its event time, and decides between its batches.

News is taken in by the thread that brings it; the lane's own thread waits for the next decision.
Nothing here waits for a server.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from functools import partial
from typing import Final

from pipeline.boundaries import lane_time
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Ends, EndsByTopic, Place
from pipeline.boundaries.lane_time import STABLE, LaneTime, Steered, Writer, Writers
from pipeline.boundaries.next_batch import (
    Batch,
    Decision,
    LastBatch,
    Limits,
    PassOn,
    Sample,
    Wait,
    again,
    next_batch,
    offsets_between,
)
from pipeline.boundaries.profile import DerivedInput, LaneProfile
from pipeline.clock import Clock, steady_ms
from pipeline.errors import BrokenInvariantError
from pipeline.heartbeats.steps import Doing, LaneStep
from pipeline.ids import Epoch, Millis, SteadyMillis, StreamName
from pipeline.lanes.batch import BatchFacts, check_planned
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions

LOOK_S: Final = 1.0
"""Interval in which a waiting lane looks at the time: a stream falls silent without news."""
REPORT_MS: Final = 500
"""Least interval between two reports of a lane's event time, unless it becomes idle or active."""


class LeftOut(Enum):
    """Why partitions are not read, besides that their records are not answered."""

    UNCHECKED = "unchecked"
    """It is not checked yet whether they still have what was read of them."""
    STEERED = "steered"
    """A fork goes on without them."""


class LanePlanner:
    """Plans the batches of one lane. Thread-safe.

    Args:
        profile: the lane's inputs and shape.
        clock: steady time.
        report: called with the lane's event time when it has changed.
        place: the fragment, for the log.
    """

    def __init__(
        self,
        profile: LaneProfile,
        clock: Clock,
        report: Callable[[LaneTime], None],
        place: str = "",
    ) -> None:
        self._profile = profile
        self._clock = clock
        self._report = report
        self._changed = threading.Condition()
        self._stopped = self._ended = False
        derived = (one for one in profile.inputs if isinstance(one, DerivedInput))
        self._writers = frozenset(lane_time.writer_of(one) for one in derived)
        self._ends: Ends | None = None
        self._all_ends: Ends | None = None
        self._reasons: dict[LeftOut, frozenset[Place]] = {}
        self._silent: Mapping[Place, SteadyMillis] = {}
        self._fallen: EndsByTopic | None = None
        self._time: LaneTime | None = None
        self._steered = STABLE
        self._limits = Limits(0)
        self._last = LastBatch({})
        self._planned: Batch | None = None
        self._cut: Batch | None = None
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"fragment": place})
        self._reported: tuple[LaneTime, int] | None = None
        self.step = LaneStep(clock)
        """What the lane does: it waits for a batch here, and executes it until it asks again."""

    # --- news, from any thread ------------------------------------------------------------------

    def ends_read(self, ends: Ends) -> None:
        """Take in the present ends of topics."""
        with self._changed:
            self._all_ends, ends = ends, ends.without(self._left_out)
            before, self._ends = self._ends, ends
            now_ms = steady_ms(self._clock)
            self._set(lambda time: _with_ends(time, before, ends, now_ms))
            if self._time is not None and ends.are_below(self._time.positions):
                self._fallen = ends.written

    def boundary_read(self, writer: Writer, epoch: Epoch, boundary: PendingBoundary) -> None:
        """Take in a boundary of a derived input's writer; those of others are ignored."""
        if writer not in self._writers:
            return
        with self._changed:
            self._set(lambda time: lane_time.boundary_read(time, writer, epoch, boundary))

    def activity_read(
        self, writer: Writer, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis
    ) -> None:
        """Take in an activity report of a derived input's writer, read at steady time `at_ms`."""
        if writer not in self._writers:
            return
        with self._changed:
            self._set(
                lambda time: lane_time.activity_read(time, writer, epoch, idle=idle, at_ms=at_ms)
            )

    def finished(self, marker: CommitMarker, rows_out: int) -> None:
        """Take in a committed marker of the lane."""
        with self._changed:
            now_ms = steady_ms(self._clock)
            read = self._last if dict(self._last.end) == dict(marker.end) else LastBatch({})
            self._set(
                lambda time: replace(
                    lane_time.batch_finished(time, marker, rows_out, now_ms),
                    read_until_ms=read.at_ms or time.read_until_ms,
                )
            )

    @property
    def fallen(self) -> EndsByTopic | None:
        """Ends of which one was below the lane's position: nothing is planned before `go_on`."""
        return self._fallen

    def go_on(self) -> None:
        """Plan again: `fallen` was checked."""
        with self._changed:
            self._fallen = None
            self._changed.notify_all()

    def steer(self, steered: Steered) -> None:
        """Let event time move as that of a fork; what steps aside is not read."""
        with self._changed:
            places = frozenset((at.topic, at.partition) for at in steered.without)
            self._leave_out(LeftOut.STEERED, places)
            self._steered = steered
            self._set(lambda time: _steered(time, steered))

    @property
    def observed(self) -> tuple[LaneTime, Ends | None] | None:
        """Event time of the lane and the latest ends; None: it has not begun."""
        with self._changed:
            return None if self._time is None else (self._time, self._ends)

    def sampled(self, offsets: int | None) -> None:
        """Plan again, after `Sample`: so many offsets fit; None: Kafka has not answered."""
        with self._changed:
            self._limits = self._limits.sampled(offsets)

    def state_measured(self, size_bytes: int, limit_bytes: int) -> None:
        """Take in the size of the lane's state, and its limit."""
        with self._changed:
            self._limits = replace(self._limits, state_is_full=size_bytes >= limit_bytes)

    def stop(self) -> None:
        """Plan no further batch; a waiting `next` returns at once."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    # --- the lane -------------------------------------------------------------------------------

    def begin(self, marker: CommitMarker, writers: Writers, ends: Ends | None) -> LaneTime:
        """Begin at a marker, with what was read before; returns the lane's event time."""
        with self._changed:
            ends = None if ends is None else ends.without(self._left_out)
            now_ms = steady_ms(self._clock)
            time = lane_time.begin(self._profile, marker, writers, now_ms)
            time = replace(time, steered=self._steered, silent=self._silent)
            self._time = time if ends is None else lane_time.ends_read(time, None, ends)
            self._ends = ends
            return self._time

    def unchecked(self, places: frozenset[Place]) -> None:
        """Plan nothing of these partitions, whose ends are not checked; replaces the last call."""
        with self._changed:
            self._leave_out(LeftOut.UNCHECKED, places)
            self._all_ends = None

    def silent(self, since_ms: Mapping[Place, SteadyMillis]) -> None:
        """Plan nothing of these partitions, whose records are not answered; replaces the last call.

        Args:
            since_ms: since when each of them is silent (steady time).
        """
        with self._changed:
            self._silent = since_ms
            self._leave_out_of_ends()
            self._set(lambda time: replace(time, silent=since_ms))

    def _leave_out(self, why: LeftOut, places: frozenset[Place]) -> None:
        self._reasons[why] = places
        self._leave_out_of_ends()

    def _leave_out_of_ends(self) -> None:
        self._ends = None if self._ends is None else self._ends.without(self._left_out)

    @property
    def _left_out(self) -> frozenset[Place]:
        return frozenset(self._silent).union(*self._reasons.values())

    def written(self, places: frozenset[Place]) -> EndsByTopic:
        """The ends of all records of some partitions, as answered since they are unchecked."""
        ends = self._all_ends
        written = {} if ends is None else ends.written
        return {
            topic: {part: end for part, end in there.items() if (topic, part) in places}
            for topic, there in written.items()
        }

    def begin_query(self, marker: CommitMarker, limits: Limits) -> None:
        """Begin a query at a marker: its next batch begins at the marker's end.

        If the marker has the cut of that batch, it is planned as it was cut.
        """
        with self._changed:
            is_full = self._limits.state_is_full
            self._limits = replace(limits, state_is_full=True) if is_full else limits
            self._last, self._planned = LastBatch(marker.end), None
            cut = marker.cut
            self._cut = None if cut is None else Batch(cut.end, cut.event_ms)
            self._ended = False

    def end_query(self) -> None:
        """Plan no further batch of the present query; a waiting `next` returns at once."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def next(self, within_s: float | None = None) -> Batch | PassOn | Sample | None:
        """Wait for the next batch; to be called between two batches.

        Returns:
            The batch or the boundary, or that `sampled` is to be called before there is a batch;
            None if the query or the lane is to end, or, with `within_s`, if there is none yet.
        """
        until_s = None if within_s is None else self._clock.monotonic_s() + within_s
        with self._changed:
            while not (self._stopped or self._ended):
                self.step.begin(Doing.WAIT)
                now_ms = steady_ms(self._clock)
                decision = self._decide(now_ms)
                if isinstance(decision, Batch):
                    self._planned, self._cut = decision, None
                    start = {**self._last.end, **decision.begin}
                    read = offsets_between(start, decision.end)
                    self._limits = self._limits.after(read)
                    self._last = LastBatch(decision.end, now_ms)
                    self.step.begin(Doing.BATCH)
                    return decision
                if isinstance(decision, PassOn | Sample):
                    self.step.begin(Doing.REQUEST)
                    return decision
                if until_s is not None and self._clock.monotonic_s() >= until_s:
                    self.step.begin(Doing.REQUEST)
                    return None
                self._changed.wait(_pause_s(decision, now_ms))
            self.step.begin(Doing.QUERY)
            return None

    def _decide(self, now_ms: SteadyMillis) -> Decision:
        if self._fallen is not None:
            return Wait()
        if self._cut is not None:
            return self._decide_cut(self._cut, now_ms)
        time, decision = next_batch(self._running, self._last, self._ends, self._limits, now_ms)
        self._set(partial(_replaced, time))
        if not isinstance(decision, Wait):
            self._log.debug("planned: %s", decision)
        return decision

    def _decide_cut(self, cut: Batch, now_ms: SteadyMillis) -> Decision:
        """The batch that was cut, once all partitions that it reads are checked.

        Also if one of them is silent: no other batch may come before it, so it is tried again.
        """
        start = self._last.end
        read = {(at.topic, at.partition) for at, end in cut.end.items() if end != start.get(at)}
        if read & self._reasons.get(LeftOut.UNCHECKED, frozenset()):
            return Wait()
        self._set(partial(_replaced, again(self._running, cut, now_ms)))
        self._log.info("the next batch is executed as it was cut: %s", cut)
        return cut

    @property
    def position(self) -> Positions:
        """Where the last planned batch ends, of every partition."""
        return self._last.end

    def executed(self, before: CommitMarker, facts: BatchFacts) -> Millis | None:
        """Compare an executed batch with its plan, before it is written.

        The first batch of a query may have been planned by an earlier run: then only what the
        marker says of it is known.

        Args:
            before: the marker of the batch before it.
            facts: of the batch.

        Returns:
            The event time that it brought into force; None: none, or it is not known.

        Raises:
            BrokenInvariantError: it is not what was planned.
        """
        with self._changed:
            planned = self._planned
            if planned is None:
                self._last = LastBatch(facts.end, steady_ms(self._clock))
                return None
        check_planned(planned, self._profile.shape, before, facts)
        return planned.event_ms

    def promised(self, stream: StreamName) -> Millis | None:
        """The boundary of a derived input that finished batches cover; None: there is none."""
        time = self._time
        return None if time is None else lane_time.promised(time).get(stream)

    @property
    def _running(self) -> LaneTime:
        if self._time is None:
            raise BrokenInvariantError("a batch is planned before the lane has started")
        return self._time

    def _set(self, change: Callable[[LaneTime], LaneTime]) -> None:
        """Change the event time, wake the lane, and report what has changed."""
        if self._time is None:
            return
        before, self._time = self._time, change(self._time)
        if self._time is before:
            return
        self._changed.notify_all()
        self._report_if_due(self._time)

    def _report_if_due(self, time: LaneTime) -> None:
        now_ms = steady_ms(self._clock)
        if self._reported is not None:
            last, at_ms = self._reported
            if time.idle == last.idle and now_ms - at_ms < REPORT_MS:
                return
        self._reported = time, now_ms
        self._report(time)


def _replaced(time: LaneTime, _: LaneTime) -> LaneTime:
    return time


def _steered(time: LaneTime, steered: Steered) -> LaneTime:
    return time if time.steered == steered else replace(time, steered=steered)


def _with_ends(time: LaneTime, before: Ends | None, ends: Ends, now_ms: SteadyMillis) -> LaneTime:
    """The event time with new ends; a lane that was idle is checked at once, also in a batch."""
    time = lane_time.ends_read(time, before, ends)
    return lane_time.observe(time, ends, now_ms)[0] if time.idle else time


def _pause_s(wait: Wait, now_ms: int) -> float:
    if wait.until_ms is None:
        return LOOK_S
    return min(LOOK_S, max(0, wait.until_ms - now_ms) / 1_000)

"""A follower: repeats the batches of a stable lane on another node, for their state only.

It builds the state up to the last commit marker as a rebuild does, then executes every further
batch with the ends and the watermark of its marker. It claims nothing and writes nothing. After
each batch it compares what it has decided about the records, and the number of results, with the
marker. A lane that starts on its node takes its query over, or begins from its checkpoint.
Its phases are in `pipeline/lanes/follower_phases.py`; how it gets its state is in
`follower_start.py`, what it compares in `follower_outcome.py`.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, NoReturn

from pyspark.sql import DataFrame

from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Incarnation, NodeId, Offset
from pipeline.lanes.follower_phases import (
    FollowerCourse,
    FollowerEvent,
    FollowerPhase,
    Reached,
)
from pipeline.lanes.following import NotToFollowError, UnlikeOwnerError, results_of
from pipeline.lanes.repairs import Difference, Repair, Repairs
from pipeline.lanes.start.facts import CommittedState
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.spark.batch.arrow_rows import ArrowRows
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.results import Results
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.batch_sizer import BatchLimit, BatchSizer
from pipeline.spark.run.checkpoints import Checkpoints, FollowerFolder
from pipeline.spark.run.disk import DiskFullError, check_room
from pipeline.spark.run.follower_markers import POLL_S, FollowerMarkers
from pipeline.spark.run.follower_outcome import difference, unlike
from pipeline.spark.run.follower_start import FollowerStart
from pipeline.spark.run.handover import FollowedQuery, FollowedState, Handover
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.marker_tail import MarkerTail
from pipeline.spark.run.planned_batch import plan_next_batch
from pipeline.spark.run.query_runner import Query, QueryRunner, RunningQuery, StoppingError
from pipeline.spark.run.rebuild import look_up
from pipeline.spark.run.spark_errors import translated
from pipeline.spark.run.steered_query import Answer, Steering

CATCH_UPS: Final = 3
"""A follower that has been far behind so often counts as level: it is as fast as its machine."""
STEADY_BATCHES: Final = 10
"""So does one that has repeated so many since its state was built, and is not far behind."""
WATCH_S: Final = 0.5
HANDOVER_S: Final = 10.0
"""How long the start of a lane waits for the last batches of a follower."""
START_S: Final = 60.0
"""How long a query that is offered waits for the lane that starts."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Differing:
    """A batch with another outcome.

    Args:
        marker: its marker.
        found: how it differs.
        lowered: the plan that has executed it.
        repair: what follows; None: the follower is discarded.
    """

    marker: CommitMarker
    found: Difference
    lowered: Lowered
    repair: Repair | None


class Follower:
    """Follows one fragment until it is stopped or fails. Single use.

    Args:
        settings: of the lane that would start here now.
        watch: called about once a second; an error from it ends the follower.
        course: its phase; begun.
        host: of its node.
        node: its name.
        before: the state of the follower whose place it takes; None: there is none.
    """

    def __init__(
        self,
        settings: LaneSettings,
        watch: Callable[[], None],
        course: FollowerCourse,
        host: LaneHost,
        node: NodeId,
        before: FollowedState | None = None,
    ) -> None:
        self._host = replace(host, report=lambda _: None)
        self._watch = watch
        self._course = course
        self._stop = threading.Event()
        self._ended = False
        spark = host.spark.version
        names = settings.fragment.names.stable  # a lane may take the folder over
        own = FollowerFolder.new(node, settings.epoch)
        self._checkpoints = Checkpoints(host.checkpoints, names, settings.life, spark, follower=own)
        self._folder = self._checkpoints.folder(settings.epoch)
        sizer = BatchSizer(host.kafka, host.resolver.admin, host.clock)
        self._start = FollowerStart(
            settings,
            self._host,
            self._checkpoints,
            self._new_inputs(host, settings),
            BatchLimit(sizer, settings.fragment),
            QueryRunner(self._stop),
            self._stop,
            before,
        )
        self._place, self._label = settings.place, str(settings.lane.fragment)
        self._markers = FollowerMarkers(settings.place)
        self._batch = NO_BATCH
        self._catch_ups = self._repeated = 0
        self._has_state = False
        self._repairs, self._differing = Repairs(), list[_Differing]()
        self._handover, self._is_taken_over = Handover(), False
        self._query: RunningQuery | None = None
        self._watched_s = 0.0

    problem = ""
    """An error ends it."""

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`. Thread-safe."""
        self._stop.set()

    @property
    def reached(self) -> Reached:
        """How far its state is; from another thread, too."""
        at = self._markers.at
        return Reached(None if at is None or self._course.is_level else at.written_at_ms)

    @property
    def followed(self) -> FollowedState | None:
        """The state that it has left, once `run` has returned; None: there is none.

        Also that of the follower whose place it takes, until it has used it.
        """
        if self._is_taken_over or self._repairs.is_in_doubt:
            return None
        at = self._markers.at
        if at is None or not self._has_state:
            return self._start.before
        incarnation = Incarnation(at.incarnation)
        return FollowedState(self._folder, incarnation, self._start.settings.version)

    def discard(self) -> None:
        """Remove what it has left, once `run` has returned, unless its query was taken over."""
        self._start.drop_before()
        if not self._is_taken_over:
            self._has_state = False
            self._checkpoints.discard()

    def hand_over(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """See `Followed.query`. Called by the lane that has claimed, while `run` runs."""
        own = self._start.settings
        is_same = (settings.life, settings.version, settings.topic_ids) == (
            own.life,
            own.version,
            own.topic_ids,
        )
        follows = self._course.phase in (FollowerPhase.FOLLOWING, FollowerPhase.LEVEL)
        follows = follows and not self._repairs.is_in_doubt
        if not (follows and is_same and settings.fragment == own.fragment):
            return None
        what = "taking a follower's query over"
        return self._handover.ask(last, Deadline.after(self._host.clock, HANDOVER_S, what), stop)

    def run(self) -> None:
        """Build the state and follow; returns after `request_stop`, or if its query is taken over.

        Raises:
            UnlikeOwnerError: batches had another outcome, also after repairs.
            DiskFullError: there is no room for its state, which is removed.
            MedusaError: the state cannot be built, or the owner cannot be followed now.
        """
        self._host.claimed()  # Spark is needed here now
        tail = MarkerTail(self._host.kafka, self._start.settings.fragment.names.markers)
        with ExitStack() as closing:
            closing.callback(tail.close)
            try:
                with translated(self._folder):
                    self._run(tail)
            except StoppingError:
                return
            except DiskFullError as error:
                self.discard()
                place = error.place or str(self._folder)
                raise DiskFullError(error.message, place=place, hint=error.hint) from error
            finally:
                self._handover.close()
                is_of_use = self._markers.is_whole and not self._repairs.is_in_doubt
                self._has_state = self._has_state and is_of_use
                if not self._has_state and not self._is_taken_over:
                    self._checkpoints.discard()

    def _run(self, tail: MarkerTail) -> None:
        """Build the state and follow; build again what is missing, or differs.

        It raises in the end.
        """
        marker = tail.last()
        since: CommittedState | None = None
        if marker is None:
            raise NotToFollowError("the fragment has not run yet", place=self._place)
        self._check()
        marker = self._start.reach(tail, marker)
        while True:
            built = self._start.build(marker, since)
            if built is None:
                self._wait_only(tail, marker)
            self._has_state, self._batch, self._repeated = True, built.last, 0
            self._markers.built(marker)
            if since is None:
                self._repairs.built_from_log()
            self._course.move(FollowerEvent.BUILT)
            if self._catch_ups >= CATCH_UPS:
                # The lane that starts here does the same: it is not further behind then.
                self._repeated_all()
            # After a catch-up at least one batch is repeated: else it might never get any further.
            far = since is None and self._markers.is_far_behind(tail, self._start.most)
            if not far:
                self._follow(tail, built.lowered)
            self._watch_if_due()
            marker, since = self._to_build(tail)

    def _to_build(self, tail: MarkerTail) -> tuple[CommitMarker, CommittedState | None]:
        """The marker to build next, since it is far behind or has to repair its state; and its own.

        None: the state is built from the log.

        Raises:
            UnlikeOwnerError: it has repaired its state too often.
        """
        differs = self._differing.pop() if self._differing else None
        if differs is not None:
            if differs.repair is None:
                self._has_state = False
                raise self._unlike(differs)
            self._markers.poll(tail)
        at, marker = self._markers.running, self._markers.newest()
        since = self._own_state(at, marker)
        if differs is None:
            self._catch_ups += 1
            self._course.move(FollowerEvent.FELL_BEHIND)
            self._say(f"far behind: from batch {at.batch} to {marker.batch} at once")
        else:
            if differs.repair is Repair.FROM_LOG:
                since = None
            self._course.move(FollowerEvent.DIFFERED)
            how = Repair.FROM_LOG if since is None else Repair.SINCE_AGREED
            self._say(f"repaired {how.value}, up to batch {marker.batch} at once")
        return marker, since

    def _own_state(self, at: CommitMarker, marker: CommitMarker) -> CommittedState | None:
        """The own state, as what a later marker's is built from; None: it is of no use for that."""
        end = {**dict.fromkeys(marker.end, Offset(0)), **at.end}
        if any(offset > end[place] for place, offset in marker.needed.items()):
            return None
        return CommittedState(self._batch, end, at.eviction_ms)

    def _wait_only(self, tail: MarkerTail, last: CommitMarker) -> NoReturn:
        """Wait for the stop: there is no state to follow.

        Raises:
            StoppingError: it was stopped.
            NotToFollowError: a lane with state has run its first batch meanwhile.
        """
        self._course.move(FollowerEvent.NOTHING_TO_BUILD)
        while not self._stop.is_set():
            found = tail.next(POLL_S)
            self._watch_if_due()
            if found and self._start.settings.fragment.stateful_box is not None:
                first = f"it has read its first records, from batch {last.batch} on"
                raise NotToFollowError(first, place=self._place)
        raise StoppingError

    # --- following ------------------------------------------------------------------------------

    def _follow(self, tail: MarkerTail, lowered: Lowered) -> None:
        """Repeat batches until the stop, which raises; or until what is newer is read at once.

        So it is if a batch differs, if it is far behind, or if markers are missing.
        """
        now_ms, inputs, markers = self._host.clock.now_ms, self._start.inputs, self._markers
        while True:
            first = self._await_first(tail)
            if first is None:
                return
            if markers.has_grown:
                lowered, markers.has_grown = self._start.planned(markers.running), False
                self._say("the owner reads more partitions: so does its query from now on")
            number = BatchId(self._batch + 1)
            plan_next_batch(self._folder, number, lowered, first.end, first.eviction_ms, now_ms())
            run = partial(self._run_once, tail)
            try:
                read = markers.running.end
                lowered = inputs.with_schemas(self._start.lowered, self._label, lowered, read, run)
            except UnlikeOwnerError:
                if self._stop.is_set():
                    raise StoppingError from None
                return
            if self._stop.is_set():
                raise StoppingError
            if not markers.has_grown:
                return

    def _await_first(self, tail: MarkerTail) -> CommitMarker | None:
        """Wait for the first batch to repeat, while no query runs; None: markers are missing."""
        while not self._stop.is_set():
            self._watch_if_due()
            found = self._next(tail)
            if found is not None or self._markers.has_hole:
                return found
            if self._handover.is_due(self._markers.running):  # the lane begins from the state
                break
        raise StoppingError

    def _watch_if_due(self) -> None:
        """What is done once a second, while no query runs."""
        now_s = self._host.clock.monotonic_s()
        if now_s - self._watched_s >= WATCH_S:
            self._watched_s = now_s
            self._check()

    def _check(self) -> None:
        """What is done once a second."""
        check_room(self._host.checkpoints, self._folder)
        self._watch()

    def _run_once(self, tail: MarkerTail, lowered: Lowered) -> None:
        inputs, at = self._start.inputs, self._markers.running
        inspector = Inspector(lowered, inputs.again())
        query = Query(
            name=f"{self._label}.{self._start.settings.epoch}.follower",
            rows=emit(lowered, inputs.reader(at.end), settled_ms=at.boundary_ms),
            lowered=lowered,
            folder=self._folder,
            write=partial(self._repeat, inspector),
            watch=lambda _: self._check(),
            steering=Steering(self._host.spark, partial(self._answer, tail, lowered)),
            end=self._end,
            meter=self._host.meters.query(self._start.settings.lane.fragment, self._host.spark),
        )
        self._query = running = RunningQuery(query, self._stop)
        try:
            running.run()
        finally:
            self._query = None  # it keeps objects of Java
            self._is_taken_over = running.taken_over.is_set()
        if self._is_taken_over:
            raise StoppingError

    def _answer(self, tail: MarkerTail, lowered: Lowered) -> Answer | None:
        """The next batch to repeat; None: the query is to end, or is taken over."""
        markers = self._markers
        markers.poll(tail, POLL_S)
        self._judge(tail)  # also if batches take long, and the next one is always there
        while not (self._stop.is_set() or self._ended or self._cannot_go_on):
            if self._handover.is_due(markers.running):
                self._offer(lowered)
            elif markers.is_far_behind(tail, self._start.most):
                break
            elif (found := self._next(tail)) is not None:
                return Answer(found.end, found.eviction_ms)
        return None

    @property
    def _cannot_go_on(self) -> bool:
        """Whether the query that runs cannot execute the next batch."""
        return self._markers.has_grown or self._markers.has_hole

    def _offer(self, lowered: Lowered) -> None:
        """Offer the query, and wait until it is taken over; else it ends."""
        query = self._query
        if query is None:
            raise BrokenInvariantError("a query that does not run asks for a batch")
        batch, clock = self._batch, self._host.clock
        found = FollowedQuery(query, self._checkpoints, self._start.inputs, lowered, batch)
        if not self._handover.offer(found):
            return
        deadline = Deadline.after(clock, START_S, "waiting for the lane that takes it over")
        while not (self._stop.is_set() or self._ended or deadline.passed):
            if query.taken_over.wait(POLL_S):
                break
        query.refuse_takeover()
        self._stop.set()

    def _end(self) -> None:
        self._ended = True

    def _next(self, tail: MarkerTail) -> CommitMarker | None:
        """What is expected of the next batch, if there is one."""
        found = self._markers.next(tail, self._start.most, runs=self._query is not None)
        if self._markers.is_empty:
            self._judge(tail)
        return found

    def _repeat(self, inspector: Inspector, rows: DataFrame, batch: int, engine: Engine) -> None:
        """Execute a batch again, and compare its outcome with its marker.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            UnlikeOwnerError: the outcome is another one.
        """
        at, marker = self._markers.running, self._markers.planned
        table = ArrowRows(rows).toArrow()
        facts = engine.batch_facts(batch, table)
        if facts.unknown:
            unknown = inspector.unknown_schemas(at.end, marker.end)
            if found := look_up(unknown, self._host.resolver, chosen=False):
                raise UnknownSchemasError(found)
        results = Results(table)
        other = difference(at, marker, facts, results, inspector, engine.lowered)
        if other is not None:  # noted here: if the query is being stopped, the error is hidden
            repair = self._repairs.differs(other)
            self._differing = [_Differing(marker, other, engine.lowered, repair)]
            text = "batch %d: %s"
            _log.warning(text, marker.batch, other.why, extra={"fragment": self._label})
            raise self._unlike(self._differing[0])
        self._repairs.agrees(marker, results_of(at, marker))
        self._batch = BatchId(batch)
        self._repeated += 1
        self._markers.repeated()

    def _unlike(self, differs: _Differing) -> UnlikeOwnerError:
        """The error for a batch with another outcome; it names boxes once repairs do not help."""
        repairs = self._repairs.in_a_row if differs.repair is None else 0
        return unlike(differs.marker, differs.found, differs.lowered, repairs, self._place)

    def _judge(self, tail: MarkerTail) -> None:
        """Note that it is level, once it is."""
        if self._course.is_level:
            return
        if self._repeated >= STEADY_BATCHES or self._markers.is_near(tail):
            self._repeated_all()

    def _repeated_all(self) -> None:
        if not self._course.is_level and not self._repairs.is_in_doubt:
            self._course.move(FollowerEvent.REPEATED_ALL)

    def _say(self, text: str) -> None:
        _log.info("%s", text, extra={"fragment": self._label})

    def _new_inputs(self, host: LaneHost, settings: LaneSettings) -> LaneInputs:
        del settings
        return LaneInputs(host)

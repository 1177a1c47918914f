"""A follower: repeats the batches of a stable lane on another node, for their state only.

It builds the state up to the last commit marker as a rebuild does, then executes every further
batch with the ends and the watermark of its marker. It claims nothing and writes nothing. After
each batch it compares what it has decided about the records, and the number of results, with the
marker. A lane that starts on its node takes its query over, or begins from its checkpoint.
Its phases are in `pipeline/lanes/follower_phases.py`.
"""

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Final, NoReturn

from pyspark.sql import DataFrame

from brokers.kafka_interface import NotNowError
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Epoch, Incarnation, NodeId
from pipeline.lanes.follower_phases import (
    FollowerCourse,
    FollowerEvent,
    FollowerPhase,
    Reached,
)
from pipeline.lanes.following import (
    Lost,
    NotToFollowError,
    PassOver,
    Repeat,
    cannot_reach,
    follow,
    repeats,
)
from pipeline.lanes.start.decision import Rebuild, decide_start
from pipeline.lanes.start.facts import CheckpointFacts, CommittedState, Unusable
from pipeline.lanes.start.plan import RebuiltCheckpoint, StartFacts, plan_start
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.spark.batch.arrow_rows import ArrowRows
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.repeated import judged_otherwise, other_results, unlike_owner
from pipeline.spark.batch.results import Results
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.batch_sizer import BatchLimit, BatchSizer
from pipeline.spark.run.carried import CarriedMarker, carried
from pipeline.spark.run.checkpoints import Checkpoints, FollowerFolder
from pipeline.spark.run.handover import FollowedQuery, FollowedState, Handover
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.marker_tail import MarkerTail
from pipeline.spark.run.owner_checkpoint import link_newest
from pipeline.spark.run.planned_batch import plan_next_batch
from pipeline.spark.run.query_runner import Query, QueryRunner, RunningQuery, StoppingError
from pipeline.spark.run.rebuild import look_up
from pipeline.spark.run.rebuild_query import RebuildQuery, Rebuilt
from pipeline.spark.run.spark_errors import translated
from pipeline.spark.run.start_request import start_request
from pipeline.spark.run.steered_query import Answer, Steering
from pipeline.spark.run.topic_identity import watch_topics

POLL_S: Final = 0.05
CATCH_UPS: Final = 3
"""A follower that has been far behind so often counts as level: it is as fast as its machine."""
WATCH_S: Final = 0.5
FAR_MS: Final = 3_000
"""A follower is level with its owner when the batch that it has repeated is younger."""
FAR_BATCHES: Final = 5
"""It is far behind when it would have to execute more batches, of which the first is older: to
read what is missing at once takes two new queries."""
HANDOVER_S: Final = 10.0
"""How long the start of a lane waits for the last batches of a follower."""
START_S: Final = 60.0
"""How long a query that is offered waits for the lane that starts."""
REACHED_S: Final = 5.0
"""How long the markers are awaited that the owner has written before its checkpoint."""
BEGINS: Final = "a follower begins"

_log = logging.getLogger(__name__)


class Follower:
    """Follows one fragment until it is stopped or fails. Single use.

    Args:
        settings: of the lane that would start here now.
        watch: called about once a second; an error from it ends the follower.
        course: its phase; begun.
        host: of its node.
        node: its name.
    """

    def __init__(
        self,
        settings: LaneSettings,
        watch: Callable[[], None],
        course: FollowerCourse,
        host: LaneHost,
        node: NodeId,
    ) -> None:
        self._settings = settings
        self._host = replace(host, report=lambda _: None)
        self._watch = watch
        self._course = course
        self._stop = threading.Event()
        self._ended = False
        self._runner = QueryRunner(self._stop)
        self._inputs = LaneInputs(host)
        spark = host.spark.version
        names = settings.fragment.names.stable  # a lane may take the folder over
        own = FollowerFolder.new(node, settings.epoch)
        self._checkpoints = Checkpoints(host.checkpoints, names, settings.life, spark, follower=own)
        self._folder = self._checkpoints.folder(settings.epoch)
        sizer = BatchSizer(host.kafka, host.resolver.admin, host.clock)
        self._limit = BatchLimit(sizer, settings.fragment)
        self._from = CarriedMarker(None, ())
        self._waiting: list[CommitMarker] = []
        self._at: CommitMarker | None = None
        self._planned: tuple[CommitMarker, int] | None = None
        self._batch = NO_BATCH
        self._most = self._catch_ups = 0
        self._built = self._reached = False
        self._handover, self._is_taken_over = Handover(), False
        self._query: RunningQuery | None = None
        self._watched_s = 0.0

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`. Thread-safe."""
        self._stop.set()

    problem = ""
    """An error ends it."""

    @property
    def reached(self) -> Reached:
        """How far its state is; from another thread, too."""
        at = self._at
        return Reached(None if at is None or self._course.is_level else at.written_at_ms)

    @property
    def followed(self) -> FollowedState | None:
        """The state that it has left, once `run` has returned; None: there is none."""
        if self._at is None or not self._built or self._is_taken_over:
            return None
        incarnation = Incarnation(self._at.incarnation)
        return FollowedState(self._folder, incarnation, self._settings.version)

    def discard(self) -> None:
        """Remove what it has left, once `run` has returned, unless its query was taken over."""
        if not self._is_taken_over:
            self._checkpoints.discard()

    def hand_over(
        self, settings: LaneSettings, last: CommitMarker, stop: threading.Event
    ) -> FollowedQuery | None:
        """See `Followed.query`. Called by the lane that has claimed, while `run` runs."""
        own = self._settings
        is_same = (settings.life, settings.version, settings.topic_ids) == (
            own.life,
            own.version,
            own.topic_ids,
        )
        follows = self._course.phase in (FollowerPhase.FOLLOWING, FollowerPhase.LEVEL)
        if not (follows and is_same and settings.fragment == own.fragment):
            return None
        what = "taking a follower's query over"
        return self._handover.ask(last, Deadline.after(self._host.clock, HANDOVER_S, what), stop)

    def run(self) -> None:
        """Build the state and follow; returns after `request_stop`, or if its query is taken over.

        Raises:
            UnlikeOwnerError: a batch has had another outcome.
            MedusaError: the state cannot be built, or the owner cannot be followed now.
        """
        self._host.claimed()  # Spark is needed here now
        tail = MarkerTail(self._host.kafka, self._settings.fragment.names.markers)
        with ExitStack() as closing:
            closing.callback(tail.close)
            try:
                with translated(self._folder):
                    self._run(tail)
            except StoppingError:
                return
            finally:
                self._handover.close()
                if self.followed is None:
                    self.discard()

    def _run(self, tail: MarkerTail) -> None:
        """Build the state and follow; if it falls far behind, build what is missing, and go on.

        It raises in the end.
        """
        marker = tail.last()
        since: CommittedState | None = None
        if marker is None:
            raise NotToFollowError("the fragment has not run yet", place=self._settings.place)
        if self._settings.fragment.stateful_box is not None:
            marker = self._reach(tail, marker)
        while True:
            built = self._build(marker, since)
            if built is None:
                self._wait_only(tail, marker)
            self._built, self._at, self._batch = True, marker, built.last
            self._course.move(FollowerEvent.BUILT)
            if self._catch_ups >= CATCH_UPS:
                # The lane that starts here does the same: it is not further behind then.
                self._course.move(FollowerEvent.REPEATED_ALL)
            # After a catch-up at least one batch is repeated: else it might never get any further.
            if since is not None or not self._is_far_behind(tail):
                self._follow(tail, built, marker)
            self._watch_if_due()
            at, marker = self._running, self._newest()
            since = None
            if all(offset <= at.end[place] for place, offset in marker.needed.items()):
                since = CommittedState(self._batch, at.end, at.eviction_ms)
            self._catch_ups += 1
            self._course.move(FollowerEvent.FELL_BEHIND)
            self._say(f"far behind: from batch {at.batch} to {marker.batch} at once")

    def _reach(self, tail: MarkerTail, marker: CommitMarker) -> CommitMarker:
        """Link the owner's checkpoint, if it is reached; returns the marker to build up to.

        The owner goes on meanwhile: the marker has to be that of the checkpoint, or a later one.
        """
        host, last = self._host, marker
        batch = link_newest(marker, self._settings, host, self._checkpoints, self._stop)
        what = "reading the markers up to the owner's checkpoint"
        deadline = Deadline.after(host.clock, REACHED_S, what)
        while last.batch < batch and not (self._stop.is_set() or deadline.passed):
            last = (last, *tail.next(POLL_S))[-1]
            if last.incarnation != marker.incarnation:
                return last
        self._reached = batch != NO_BATCH and last.batch >= batch
        return last

    def _build(self, marker: CommitMarker, since: CommittedState | None) -> Rebuilt | None:
        """Build the state up to a marker, from an own one if it is given; None: it has none."""
        # The owner may have started again meanwhile.
        epoch = Epoch(max(self._settings.epoch, marker.epoch + 1))
        self._settings = settings = replace(self._settings.after(marker), epoch=epoch)
        admin = self._host.resolver.admin
        if settings.begins_anew(marker) or settings.on_change(marker) is not None:
            raise NotToFollowError(
                "its owner has not carried out the last deploy yet", place=settings.place
            )
        watch_topics(admin, settings.fragment, settings.topic_ids).ask()()
        self._from = carried(marker.with_output(settings.output_id), settings, admin)
        lowered, own = self._lowered(), self._from.marker
        if own is None:
            raise NotToFollowError("the fragment has not run yet", place=settings.place)
        resolver, most = self._host.resolver, self._limit.at(own.end)
        request = start_request(settings, self._from, lowered, resolver, most)
        same = dict(own.end) == dict(marker.end)  # under the names of this plan, and of its own
        same = same and request.positions.keys() == own.end.keys()
        if request.plan != own.plan or not same:
            raise NotToFollowError(
                "its owner has not begun with the present plan or topics yet", place=settings.place
            )
        start = decide_start(own, self._beginning(own, lowered), request)
        if not isinstance(start, Rebuild):
            return None
        now_ms = self._host.clock.now_ms()
        plan = plan_start(start, request, StartFacts(own.incarnation, now_ms))
        if not isinstance(plan.checkpoint, RebuiltCheckpoint):
            return None
        query = RebuildQuery(
            settings=settings,
            host=self._host,
            runner=self._runner,
            limit=self._limit,
            folders=self._checkpoints,
            reader=self._inputs.reader,
            again=self._inputs.again,
            with_schemas=partial(self._inputs.with_schemas, self._lowered, self._label),
            stop=self._stop,
        )
        # No writer is fenced here: a marker may be visible before the dead letters written with it.
        letters = settings.fragment.names.dead_letters
        if not admin.await_decided(letters):
            raise NotNowError(
                "a transaction that has written there is open, or it has no leader now, so which "
                "records were left out is not known",
                place=f"topic {letters}",
                hint="nothing has to be done: it is tried again",
            )
        self._most = most
        return query.run(replace(plan.checkpoint.rebuild, since=since), lowered)

    def _beginning(self, own: CommitMarker, lowered: Lowered) -> CheckpointFacts | Unusable:
        """The facts of the owner's checkpoint, once, if it is reached."""
        reached, self._reached = self._reached, False
        if not reached:
            return Unusable(BEGINS)
        return self._checkpoints.of_follower(self._settings.epoch, own.incarnation, lowered)

    def _is_far_behind(self, tail: MarkerTail) -> bool:
        """Whether the next batch was written long ago."""
        if not self._waiting:
            self._waiting.extend(tail.next(POLL_S))
        if not self._waiting:
            return False
        behind_ms = self._host.clock.now_ms() - self._waiting[0].written_at_ms
        if behind_ms <= FAR_MS or len(self._waiting) <= FAR_BATCHES:
            return False
        return repeats(self._running, self._waiting, self._most) > FAR_BATCHES

    def _newest(self) -> CommitMarker:
        """The last marker that is waiting, if it is one to which the state can be brought."""
        waiting = tuple(self._waiting)
        self._waiting.clear()
        if why := cannot_reach(self._running, waiting):
            raise NotToFollowError(why, place=self._settings.place)
        return waiting[-1]

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
            if found and self._settings.fragment.stateful_box is not None:
                first = f"it has read its first records, from batch {last.batch} on"
                raise NotToFollowError(first, place=self._settings.place)
        raise StoppingError

    # --- following ------------------------------------------------------------------------------

    def _follow(self, tail: MarkerTail, built: Rebuilt, last: CommitMarker) -> None:
        """Repeat batches until the stop, which raises, or until it is far behind.

        `last`: whose state was built.
        """
        now_ms, number = self._host.clock.now_ms, BatchId(built.last + 1)
        first = self._await_first(tail)
        plan_next_batch(self._folder, number, built.lowered, first.end, first.eviction_ms, now_ms())
        run = partial(self._run_once, tail)
        self._inputs.with_schemas(self._lowered, self._label, built.lowered, last.end, run)
        if self._stop.is_set():
            raise StoppingError

    def _await_first(self, tail: MarkerTail) -> CommitMarker:
        """Wait for the first batch to repeat, while no query runs."""
        while not self._stop.is_set():
            self._watch_if_due()
            found = self._next(tail)
            if found is not None:
                return found
            if self._handover.is_due(self._running):  # the lane begins from the state
                break
        raise StoppingError

    def _watch_if_due(self) -> None:
        """What is done once a second, while no query runs."""
        now_s = self._host.clock.monotonic_s()
        if now_s - self._watched_s >= WATCH_S:
            self._watched_s = now_s
            self._watch()

    def _run_once(self, tail: MarkerTail, lowered: Lowered) -> None:
        inspector = Inspector(lowered, self._inputs.again())
        at = self._running
        query = Query(
            name=f"{self._settings.lane.fragment}.{self._settings.epoch}.follower",
            rows=emit(lowered, self._inputs.reader(at.end), settled_ms=at.boundary_ms),
            lowered=lowered,
            folder=self._folder,
            write=partial(self._repeat, inspector),
            watch=lambda _: self._watch(),
            steering=Steering(self._host.spark, partial(self._answer, tail, lowered)),
            end=self._end,
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
        self._waiting.extend(tail.next(0.0 if self._waiting else POLL_S))
        if len(self._waiting) <= 1:  # if batches take long, the next one is always there
            self._repeated_all()
        while not (self._stop.is_set() or self._ended):
            if self._handover.is_due(self._running):
                self._offer(lowered)
            elif self._is_far_behind(tail):
                break
            elif (found := self._next(tail)) is not None:
                return Answer(found.end, found.eviction_ms)
        return None

    def _offer(self, lowered: Lowered) -> None:
        """Offer the query, and wait until it is taken over; else it ends."""
        query = self._query
        if query is None:
            raise BrokenInvariantError("a query that does not run asks for a batch")
        batch, clock = self._batch, self._host.clock
        found = FollowedQuery(query, self._checkpoints, self._inputs, lowered, batch)
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
        """What is expected of the next batch; its markers stay in the queue."""
        if not self._waiting:
            self._waiting.extend(tail.next(POLL_S))
        while self._waiting:
            match follow(self._running, self._waiting, self._most):
                case Repeat(marker, number):
                    self._planned = marker, number
                    return marker
                case PassOver(marker):
                    self._at = marker
                    del self._waiting[0]
                case Lost(why):
                    raise NotToFollowError(why, place=self._settings.place)
        if tail.is_at_end:
            self._repeated_all()
        return None

    def _repeat(self, inspector: Inspector, rows: DataFrame, batch: int, engine: Engine) -> None:
        """Execute a batch again, and compare its outcome with its marker.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            UnlikeOwnerError: the outcome is another one.
        """
        at, (marker, number) = self._running, self._planned_batch
        table = ArrowRows(rows).toArrow()
        facts = engine.batch_facts(batch, table)
        if facts.unknown:
            unknown = inspector.unknown_schemas(at.end, marker.end)
            if found := look_up(unknown, self._host.resolver, chosen=False):
                raise UnknownSchemasError(found)
        why = judged_otherwise(marker, facts, inspector)
        why = why or other_results(at, marker, Results(table), engine.lowered)
        if dict(facts.end) != dict(marker.end):
            why = "it ends elsewhere"
        if why:
            self._built = False  # also if the query is being stopped, which hides the error
            _log.warning("batch %d: %s", marker.batch, why, extra={"fragment": self._label})
            raise unlike_owner(marker, why, engine.lowered, self._settings.place)
        self._at, self._batch = self._waiting[number - 1], BatchId(batch)
        del self._waiting[:number]
        if self._host.clock.now_ms() - marker.written_at_ms <= FAR_MS:
            self._repeated_all()

    def _repeated_all(self) -> None:
        if not self._course.is_level:
            self._course.move(FollowerEvent.REPEATED_ALL)

    @property
    def _planned_batch(self) -> tuple[CommitMarker, int]:
        if self._planned is None:
            raise BrokenInvariantError("a follower executes a batch that was not planned")
        return self._planned

    @property
    def _running(self) -> CommitMarker:
        if self._at is None:
            raise NotToFollowError("nothing is followed yet", place=self._settings.place)
        return self._at

    def _lowered(self) -> Lowered:
        return self._inputs.lowered(self._settings, self._from.sources)

    def _say(self, text: str) -> None:
        _log.info("%s", text, extra={"fragment": self._label})

    @property
    def _label(self) -> str:
        return str(self._settings.lane.fragment)

"""A stable lane: one fragment's query, from claim to stop.

Order of a start, after the epoch was claimed: initialise transactions (which fences the last
owner), read the marker, link the last checkpoint into the folder of the lane's epoch, stop if the
marker's epoch is newer, decide the start by the marker and that copy, commit a copy of the marker
under the lane's epoch, rebuild the state if it cannot be continued, start the query.
"""

import logging
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from brokers.kafka.group_mirror import GroupMirror
from brokers.kafka_interface import RecordWriter, TransactionWriter
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.profile import profile
from pipeline.clock import Deadline, steady_ms
from pipeline.errors import RetryError
from pipeline.heartbeats.steps import Doing
from pipeline.ids import BatchId, Incarnation, TopicId
from pipeline.lanes.batch_size import RECORDS_PER_BATCH
from pipeline.lanes.events import (
    BatchFinished,
    LaneStarted,
    LaneTimed,
)
from pipeline.lanes.new_partitions import no_beginning, reassigned
from pipeline.lanes.start.decision import (
    Continue,
    Rebuild,
    check_owner,
    decide_start,
)
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import continued, first_marker
from pipeline.lanes.start.plan import (
    LinkedCheckpoint,
    NoCheckpoint,
    RebuiltCheckpoint,
    StartPlan,
    plan_start,
)
from pipeline.markers.commit_marker import CommitMarker
from pipeline.reliability import Recovery
from pipeline.spark.query.lowered import Lowered, restricted
from pipeline.spark.run.acknowledged_check import AcknowledgedCheck
from pipeline.spark.run.background_job import BackgroundJob
from pipeline.spark.run.batch_sizer import BatchLimit, BatchSizer
from pipeline.spark.run.carried import CarriedMarker, carried
from pipeline.spark.run.checkpoint_faults import CheckpointFaults
from pipeline.spark.run.checkpoints import Checkpoints
from pipeline.spark.run.handover import Followed, FollowedQuery
from pipeline.spark.run.lane_copies import LaneCopies
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_query import LaneQuery
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.lane_trimming import finish_trims, new_trimmers
from pipeline.spark.run.lane_waits import LaneWaits
from pipeline.spark.run.last_marker import settled_marker
from pipeline.spark.run.lasting_query import LastingQuery
from pipeline.spark.run.output_succession import OtherWriters, begin_takeover
from pipeline.spark.run.planned_batch import withdraw_batch
from pipeline.spark.run.query_runner import QueryRunner, RunningQuery, StoppingError
from pipeline.spark.run.reachable_ends import ReachableEnds
from pipeline.spark.run.rebuild_query import RebuildQuery, Rebuilt
from pipeline.spark.run.spark_errors import translated
from pipeline.spark.run.start_facts import StartReads
from pipeline.spark.run.start_request import start_request
from pipeline.spark.run.start_state import StartState
from pipeline.spark.run.topic_identity import watch_topics
from pipeline.spark.write.outgoing import BatchWriter
from pipeline.spark.write.results_first import DELIVERY_DEADLINE_S, ResultsFirst
from pipeline.spark.write.sink import Sink
from pipeline.spark.write.sink_context import SinkContext
from pipeline.spark.write.transactions import InTransactions

START_DEADLINE_S = 60.0
BOUNDARY_DEADLINE_S = 300.0


def stable_lane(
    settings: LaneSettings, followed: Followed | None, *, host: LaneHost
) -> "StableLane":
    """A lane on this node, of a fragment that it has claimed."""
    host.claimed()
    return StableLane(settings, host, followed)


class StableLane:
    """Runs one fragment until it is stopped or fails. Single use.

    Args:
        settings: of the lane.
        host: of its node.
        followed: the follower of its fragment on this node; None: there is none.
    """

    def __init__(
        self, settings: LaneSettings, host: LaneHost, followed: Followed | None = None
    ) -> None:
        self._settings = settings
        self._host = host
        self._clock = host.clock
        fragment = settings.fragment
        self._stop = threading.Event()
        self._runner = QueryRunner(self._stop)
        self._checkpoints = Checkpoints(
            host.checkpoints, settings.names, settings.life, host.spark.version
        )
        self._label = str(settings.lane.fragment)
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"fragment": self._label})
        self._state = StartState(settings, host, self._checkpoints, followed, self._stop, self._log)
        self._copies = LaneCopies(settings, host, self._log)
        self._inputs = LaneInputs(host)
        self._from = CarriedMarker(None, ())
        self._limit = BatchLimit(BatchSizer(host.kafka, host.resolver.admin, host.clock), fragment)
        self._write_job = BackgroundJob(f"write {self._label}")
        self._mirror = GroupMirror(host.kafka.group_writer(fragment.names.group), host.clock)
        self._planner = self._new_planner(settings)
        self._waits = LaneWaits(settings, host, self._planner)
        self._acknowledged: AcknowledgedCheck | None = None
        self._started = False
        self._lasting: LastingQuery | None = None
        self._rolls_back = fragment.recovery is Recovery.ROLLBACK
        self._results: ResultsFirst | None = None
        self._trimmers = new_trimmers(settings, host)

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`. Thread-safe."""
        self._stop.set()
        self._waits.request_stop()
        self._planner.stop()

    def run(self) -> None:
        """Start the lane and run it; returns after `request_stop`.

        Raises:
            FencedError: another epoch owns the fragment.
            InputError, BrokenInvariantError: an automatic restart would not help. RetryError,
            UnavailableError, EnvironmentProblem: a restart may help.
        """
        kafka = self._host.kafka
        writer = kafka.transactions(self._settings.names.transactional_id)
        boundaries = kafka.producer(BOUNDARY_DEADLINE_S)
        try:
            with (
                translated(self._checkpoints.folder(self._settings.epoch)),
                self._host.steps.running(self._settings.lane.fragment, self._planner.step),
            ):
                self._run(writer, boundaries)
        except StoppingError:
            return
        finally:
            if self._lasting is not None and not self._lasting.end():
                self._log.warning("the query that rebuilt its state does not end")
            self._waits.end()
            self._copies.end()
            self._host.news.leave(self._planner)
            self._planner.stop()
            self._write_job.close()
            writer.close()
            boundaries.close()
            if self._results is not None:
                self._results.close()
            self._mirror.close()

    def _run(self, writer: TransactionWriter, boundaries: RecordWriter) -> None:
        deadline = Deadline.after(self._clock, START_DEADLINE_S, f"starting {self._label}")
        writer.start(deadline)
        self._fenced_ms = steady_ms(self._clock)
        self._settings.check_wanted()
        names, admin = self._settings.fragment.names, self._host.resolver.admin
        last = settled_marker(self._host.kafka, admin, names)
        if last is not None:
            check_owner(last, self._settings.epoch, self._settings.place)
            self._settings.check_begun(last)
            self._settings = self._settings.after(last)
        self._topics = watch_topics(admin, self._settings.fragment, self._settings.topic_ids)
        finish_trims(self._settings, last, admin)
        lowered = self._carry_marker(last)
        marker, request = self._from.marker, self._start_request(lowered)
        start = self._state.decided(last, marker, lowered, request)
        self._acknowledged = self._check()
        if marker is not None and request.on_change is None:
            self._acknowledged.begin(marker)
        context = self._sink_context(writer, boundaries, lowered)
        sink = Sink(context, self._batch_writer(context))
        reads = StartReads(self._settings, self._host, self._inputs, self._log)
        facts = reads.facts(start, request, lowered, self._from, self._incarnation())
        plan = plan_start(start, request, facts)
        folder, lowered = self._begin(plan, request, sink, lowered)
        if not request.ran_before:
            self._settings.record_start()
        with self._faults(sink).of_query(folder):
            planned = start.planned if isinstance(start, Continue) else None
            if planned is not None and self._has_grown(sink.marker, request):
                if not self._withdraws(folder, sink.marker):
                    self._execute(planned, lowered, folder, sink)
                lowered, planned = self._with_growth(request, sink), None
            if planned is not None and self._withdraws(folder, sink.marker):
                planned = None
            self._report_start(sink.marker)
            self._copies.begin(folder, sink.marker)
            self._waits.begin(folder, sink.marker, self._inputs)
            how = planned is not None, self._running()
            self._query(sink).run(lowered, folder, sink, planned=how[0], running=how[1])

    def _faults(self, sink: Sink) -> CheckpointFaults:
        return CheckpointFaults(self._checkpoints, self._copies, self._settings.epoch, sink)

    def _running(self) -> RunningQuery | None:
        """The query that the lane takes over: of its follower, or of its rebuild."""
        if self._state.taken is not None:
            return self._state.taken.query
        return None if self._lasting is None else self._lasting.query

    def _check(self) -> AcknowledgedCheck:
        """The check that the topics still have what a marker says was read and written."""
        settings, host = self._settings, self._host
        ends = ReachableEnds(host.kafka, host.resolver.admin, self._clock)
        return AcknowledgedCheck(
            settings.fragment,
            settings.output_id,
            ends,
            self._planner,
            self._topics.ask,
            self._label,
        )

    def _batch_writer(self, context: SinkContext) -> BatchWriter:
        """The way to write that the recovery of the fragment asks for."""
        transactions = InTransactions(context)
        if not self._rolls_back:
            return transactions
        connect = partial(self._host.kafka.producer, DELIVERY_DEADLINE_S)
        self._results = ResultsFirst(context, transactions, connect)
        return self._results

    def _withdraws(self, folder: Path, marker: CommitMarker) -> bool:
        """Withdraw a planned batch that may read partitions which are not checked yet.

        So is one that was cut, or has to be: it is planned by its cut, and never without one.
        """
        check = self._acknowledged
        unchecked = check is not None and bool(check.unchecked)
        due = unchecked or self._rolls_back or marker.cut is not None
        return due and withdraw_batch(folder, BatchId(marker.batch + 1))

    def _new_planner(self, settings: LaneSettings) -> LanePlanner:
        lane, run = settings.lane, settings.run

        def report(time: LaneTime) -> None:
            self._host.report(LaneTimed(lane, run, time))

        how = profile(settings.fragment, settings.topic_ids, settings.life)
        return LanePlanner(how, self._clock, report, str(lane.fragment))

    def _report_start(self, first: CommitMarker) -> None:
        settings, names = self._settings, self._settings.fragment.names
        topics = frozenset({names.redrive, *(one.topic for one in settings.fragment.inputs)})
        time = self._host.news.join(self._planner, topics, first)
        how = settings.lane, settings.run, settings.epoch, first, time, self._fenced_ms
        self._host.report(LaneStarted(*how))
        self._host.meters.started(settings.lane.fragment, first)
        self._started = True

    def _report_batch(self, finished: BatchFinished) -> None:
        """Take in a batch, and report it, except one that precedes `LaneStarted`."""
        if self._started:
            self._planner.finished(finished.marker, finished.rows_out)
            self._waits.finished(finished.marker, finished.duration_ms)
            self._host.report(finished)
            fragment = self._settings.lane.fragment
            self._host.meters.batch(fragment, finished.marker, finished.bytes_out)

    # --- start ----------------------------------------------------------------------------------

    def _carry_marker(self, last: CommitMarker | None) -> Lowered:
        """Set the marker to start from: its last one, or another one if it begins anew."""
        settings, host = self._settings, self._host
        succession = settings.succession
        if succession is None or not settings.begins_anew(last):
            carried_on = None if last is None else last.with_output(settings.output_id)
            self._from = carried(carried_on, settings, host.resolver.admin)
            return self._lowered()
        self._from = carried(None, settings, host.resolver.admin)
        lowered = self._lowered()  # a missing schema or topic is found before others are stopped
        if last is None:  # refuses if there is a checkpoint
            found = self._state.checkpoint(None, lowered)
            decide_start(None, found, self._start_request(lowered))
        others = OtherWriters(host.kafka, host.resolver, self._clock)
        begins = begin_takeover(settings, succession, last, others)
        self._from = begins.nothing
        lowered = self._lowered()
        request, positions = self._start_request(lowered), begins.positions(lowered)
        first = first_marker(request, self._incarnation(), positions, self._clock.now_ms())
        self._from = begins.at(first)
        return lowered

    def _start_request(self, lowered: Lowered) -> StartRequest:
        marker = self._from.marker
        most = self._limit.at(marker.end) if marker else RECORDS_PER_BATCH
        return start_request(self._settings, self._from, lowered, self._host.resolver, most)

    def _begin(
        self, plan: StartPlan, request: StartRequest, sink: Sink, lowered: Lowered
    ) -> tuple[Path, Lowered]:
        """Execute a plan; returns the folder that the query continues from, and its schemas."""
        epoch, taken = request.epoch, self._state.taken
        if taken is not None and isinstance(plan.checkpoint, RebuiltCheckpoint):
            return self._take_over(taken, plan, plan.checkpoint.rebuild, request, sink)
        sink.start(plan.marker)
        match plan.checkpoint:
            case NoCheckpoint():
                folder = self._checkpoints.empty(epoch)
            case LinkedCheckpoint(withdrawn):
                folder = self._checkpoints.folder(epoch)
                if withdrawn is not None and withdraw_batch(folder, withdrawn):
                    self._log.info("batch %d is planned anew: its plan does not fit", withdrawn)
            case RebuiltCheckpoint(rebuild):
                lasts = request.positions.keys() == rebuild.marker.end.keys()
                adds = request.amnesia and rebuild.since is not None
                faults = self._faults(sink).of_addition(self._checkpoints.folder(epoch))
                with faults if adds else nullcontext():
                    done = self._rebuild(rebuild, lowered, lasts=lasts)
                self._lasting = done.lasting
                folder, lowered = self._checkpoints.folder(epoch), done.lowered
                start, needed = done.todo.start, done.todo.needed
                sink.start(plan.marker_after(start, needed, done.last, request), done.refused)
        self._checkpoints.complete(epoch, sink.marker.incarnation)
        self._state.drop_left()
        return folder, lowered

    def _take_over(
        self,
        taken: FollowedQuery,
        plan: StartPlan,
        rebuild: Rebuild,
        request: StartRequest,
        sink: Sink,
    ) -> tuple[Path, Lowered]:
        """Go on in the query of a follower, as after a rebuild that had nothing to read."""
        if self._stop.is_set():
            raise StoppingError
        needed = rebuild.begin or {}
        sink.start(plan.marker_after(rebuild, needed, taken.batch, request))
        self._checkpoints, self._inputs = taken.checkpoints, taken.inputs
        self._checkpoints.complete(request.epoch, sink.marker.incarnation)
        self._log.info("goes on in the query of its follower, after batch %d", taken.batch)
        return self._checkpoints.folder(request.epoch), taken.lowered

    def _incarnation(self) -> Incarnation:
        return Incarnation(f"{self._settings.epoch}-{self._clock.now_ms()}")

    def _lowered(self) -> Lowered:
        return self._inputs.lowered(self._settings, self._from.sources)

    def _sink_context(
        self, writer: TransactionWriter, boundaries: RecordWriter, lowered: Lowered
    ) -> SinkContext:
        fragment, admin = self._settings.fragment, self._host.resolver.admin
        return SinkContext(
            fragment=fragment,
            lane=self._settings.lane,
            run=self._settings.run,
            version=self._settings.version,
            epoch=self._settings.epoch,
            writer=writer,
            admin=admin,
            output_id=TopicId(self._settings.topic_ids[fragment.output.topic]),
            output_partitions=lowered.encoding.partitions,
            boundaries=boundaries,
            mirror=self._mirror,
            schemas=self._host.resolver,
            topics=self._topics,
            commits=self._write_job,
            plans=self._planner,
            functions=lowered.functions,
            promised=self._planner.promised,
            clock=self._clock,
            report=self._report_batch,
        )

    # --- queries --------------------------------------------------------------------------------

    def _rebuild(self, start: Rebuild, lowered: Lowered, *, lasts: bool) -> Rebuilt:
        """Rebuild the state in the folder of the epoch; `lasts`: as of `RebuildQuery`."""
        query = RebuildQuery(
            settings=self._settings,
            host=self._host,
            runner=self._runner,
            limit=self._limit,
            folders=self._checkpoints,
            reader=self._inputs.reader,
            again=self._inputs.again,
            with_schemas=partial(self._inputs.with_schemas, self._lowered, self._label),
            stop=self._stop,
            lasts=lasts,
        )
        with self._planner.step.during(Doing.REBUILD):
            return query.run(start, lowered)

    def _has_grown(self, marker: CommitMarker, request: StartRequest) -> bool:
        """Whether topics have partitions that the marker lacks."""
        return reassigned(marker, request.positions) != marker

    def _execute(self, planned: BatchId, lowered: Lowered, folder: Path, sink: Sink) -> None:
        """Execute a planned batch alone since topics got partitions.

        The batch has no ends of the new partitions, so no query that reads them can run it.
        """
        marker = sink.marker
        self._log.info("an input has more partitions; batch %d is executed without them", planned)
        self._query(sink).run_planned(restricted(lowered, marker.end), folder, sink)
        if sink.marker.batch != planned:
            raise RetryError(f"batch {planned} is planned, batch {sink.marker.batch} was written")

    def _with_growth(self, request: StartRequest, sink: Sink) -> Lowered:
        """Read all partitions from now on; returns the plan that does."""
        lowered = self._lowered()
        positions = self._host.resolver.positions_for(lowered, sink.marker)
        if problem := no_beginning(sink.marker.end, positions):  # it grew again, records are gone
            raise RetryError(problem)
        sink.start(continued(reassigned(sink.marker, positions), request))
        return lowered

    def _query(self, sink: Sink) -> LaneQuery:
        return LaneQuery(
            settings=self._settings,
            host=self._host,
            runner=self._runner,
            planner=self._planner,
            limit=self._limit,
            write_job=self._write_job,
            topics=self._topics,
            reader=self._inputs.reader,
            again=self._inputs.again,
            with_schemas=partial(self._inputs.with_schemas, self._lowered, self._label),
            watch=partial(self._watch, sink),
            stop=self._stop,
            name=f"{self._label}.{self._settings.epoch}",
        )

    def _watch(self, sink: Sink) -> None:
        """What a lane does about once a second, besides its batches."""
        self._write_job.check()
        self._topics.poll()
        if self._acknowledged is not None:
            self._acknowledged.go_on(sink.marker)
        for trimmer in self._trimmers:
            trimmer.trim_if_due()
        sink.publisher.publish_again()
        self._mirror.poll()

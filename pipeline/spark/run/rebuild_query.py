"""The query of a rebuild: planned batches in a checkpoint folder, that publish nothing."""

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from pyspark.sql import DataFrame

from pipeline.errors import RefusedError
from pipeline.ids import BatchId, Epoch
from pipeline.lanes.events import LaneRebuilding
from pipeline.lanes.rebuild_pieces import (
    Pieces,
    RebuildPlan,
    divided,
    drops_meanwhile,
    watermarks,
)
from pipeline.lanes.start.decision import Rebuild
from pipeline.lanes.start.facts import CommittedState
from pipeline.markers.positions import Positions
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lowered import Lowered, as_accepted
from pipeline.spark.query.readers import Ranges, Reader
from pipeline.spark.run.batch_sizer import BatchLimit
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_query import WithSchemas
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.lasting_query import LastingQuery
from pipeline.spark.run.lost_data import in_rebuild
from pipeline.spark.run.outside import UnreadableError
from pipeline.spark.run.planned_batch import plan_first_batch, plan_next_batch, withdraw_batch
from pipeline.spark.run.query_runner import Query, QueryRunner, StoppingError
from pipeline.spark.run.rebuild import Log, Rebuilding, UnlikeError, tried
from pipeline.spark.run.rebuild_batch import RebuildBatches
from pipeline.spark.run.spark_errors import (
    DamagedCheckpointError,
    LostDataError,
    OutsideBatchError,
    translated,
)
from pipeline.spark.run.steered_query import Steering

TRIES_MAX: Final = 3
"""Maximum number of tries of one batch whose records cannot be read."""

_log = logging.getLogger(__name__)


class Folders(Protocol):
    """The checkpoint folders of a lane."""

    def folder(self, epoch: Epoch) -> Path:
        """The folder of an epoch: a copy of the last checkpoint, if there is one."""

    def empty(self, epoch: Epoch) -> Path:
        """The empty folder of an epoch."""


@dataclass(frozen=True, slots=True)
class _Work:
    """The batches of a rebuild, the report of its progress, and its folder."""

    batches: RebuildBatches
    progress: LaneRebuilding
    folder: Path


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A rebuilt state.

    Args:
        todo: what was rebuilt.
        last: the last batch.
        lowered: the plan, with the schemas that were met.
        refused: records that a chosen rebuild has refused.
        lasting: its query, which the lane can take over; None: it has ended.
    """

    todo: Rebuilding
    last: BatchId
    lowered: Lowered
    refused: Sequence[Rejected]
    lasting: LastingQuery | None = None


@dataclass(frozen=True, slots=True)
class RebuildQuery:
    """Rebuilds the state of one lane in the folder of its epoch.

    Args:
        settings: of the lane.
        host: of its node.
        runner: runs its queries.
        limit: of the size of a batch.
        folders: its checkpoints.
        reader: reads its inputs as streams, from some positions on.
        again: reads ranges of them.
        with_schemas: runs with a plan, and again.
        stop: set when the lane is to stop.
        lasts: whether the lane can take the query over; if it has to, it begins one of its own.
    """

    settings: LaneSettings
    host: LaneHost
    runner: QueryRunner
    limit: BatchLimit
    folders: Folders
    reader: Callable[[Positions], Reader]
    again: Callable[[], Callable[[Ranges], Reader]]
    with_schemas: WithSchemas
    stop: threading.Event
    lasts: bool = False

    def run(self, start: Rebuild, lowered: Lowered) -> Rebuilt:
        """Rebuild a state, from an older checkpoint if that can be read, else from the log.

        Raises:
            StoppingError: the lane was stopped.
            MedusaError: the state cannot be rebuilt; or not from the older checkpoint, and the
                lane is not to build it from the log.
        """
        if start.since is not None:
            try:
                return self._since_checkpoint(start, start.since, lowered)
            except (DamagedCheckpointError, OutsideBatchError, UnlikeError) as error:
                if self.settings.amnesia:
                    raise
                self._say(f"not from the checkpoint of batch {start.since.batch}: {error}")
                start = replace(start, since=None)
        todo = self._prepared(start, lowered)
        folder = self.folders.empty(self.settings.epoch)
        return tried(
            partial(self.execute, todo, BatchId(0), folder, lowered),
            partial(self.folders.empty, self.settings.epoch),
        )

    def _since_checkpoint(self, start: Rebuild, since: CommittedState, lowered: Lowered) -> Rebuilt:
        folder, first = self.folders.folder(self.settings.epoch), BatchId(since.batch + 1)
        withdraw_batch(folder, first)  # it may be planned as it was executed, or otherwise
        if since.is_at(start.marker.end, start.eviction_ms):  # what topics hold does not matter
            self._say(f"{start.why}: nothing is missing in the state")
            return Rebuilt(Rebuilding(start, since.end, ()), since.batch, lowered, ())
        return self.execute(self._prepared(start, lowered), first, folder, lowered)

    def _prepared(self, start: Rebuild, lowered: Lowered) -> Rebuilding:
        log = Log(self.host.kafka, self.host.resolver.admin)
        return log.prepare(start, lowered, self.settings.fragment.names)

    def execute(self, todo: Rebuilding, first: BatchId, folder: Path, lowered: Lowered) -> Rebuilt:
        """Rebuild the state in a folder that contains the batch before the first one, or none."""
        start = todo.start
        pieces = divided(todo.begin, start.marker.end, self.limit.at(todo.begin))
        total, since = pieces.offsets(pieces.number), start.since
        self._say(
            f"{start.why}: rebuilding the state from {total} offsets in {pieces.number} batches"
            + ("" if since is None else f", after batch {since.batch} of its checkpoint")
        )
        progress = LaneRebuilding(
            self.settings.lane,
            self.settings.run,
            self.settings.epoch,
            total,
            batches=pieces.number,
        )
        self.host.report(progress)
        try:
            with translated(folder):
                plan = self._plan(todo, pieces, first, lowered)
            batches = RebuildBatches(
                todo,
                plan,
                self.host.resolver,
                self.settings.place,
                lambda done: self.host.report(
                    replace(progress, read=pieces.offsets(done), batches_done=done)
                ),
            )
            self._write_first(plan, folder, lowered)
            running: list[LastingQuery] = []
            run = partial(self._run, _Work(batches, progress, folder), running)
            lowered = self.with_schemas(lowered, start.marker.end, run)
        except LostDataError as error:
            raise in_rebuild(error, start) from error
        self._say(f"the state is rebuilt; {len(batches.refused)} records are refused")
        lasting = next(iter(running), None)
        return Rebuilt(batches.todo, plan.last, lowered, batches.refused, lasting)

    def _plan(
        self, todo: Rebuilding, pieces: Pieces, first: BatchId, lowered: Lowered
    ) -> RebuildPlan:
        """The planned batches; reads the event times of all records if that is worth it.

        Each piece is a job of its own: the lanes of a node share its cores.
        """
        start, shape = todo.start, self.settings.fragment.shape
        before_ms = None if start.since is None else start.since.watermark_ms
        found = [before_ms] * (pieces.number - 1) + [start.eviction_ms]
        if pieces.number > 1 and drops_meanwhile(shape, chosen=start.chosen):
            inspector, oldest = Inspector(self._judging(start, lowered), self.again()), []
            for piece in range(pieces.number):
                if self.stop.is_set():
                    raise StoppingError
                begin, end = pieces.end_of(piece - 1), pieces.end_of(piece)
                oldest.append(inspector.oldest_ms(begin, end, todo.left_out))
            found = [*watermarks(shape, oldest, before_ms, start.eviction_ms)]
        return RebuildPlan(pieces, tuple(found), first)

    def _write_first(self, plan: RebuildPlan, folder: Path, lowered: Lowered) -> None:
        """Write the plan of the first batch into the checkpoint; the query asks for the others."""
        first, now_ms = plan.piece(0), self.host.clock.now_ms()
        if first.batch == 0:
            spark, watermark_ms = self.host.spark, first.watermark_ms
            plan_first_batch(spark, folder, lowered, first.end, watermark_ms, now_ms)
        else:
            plan_next_batch(folder, first.batch, lowered, first.end, first.watermark_ms, now_ms)

    def _run(self, work: _Work, running: list[LastingQuery], planned: Lowered) -> None:
        """Run the batches that are left; one whose records cannot be read now is tried again.

        A query that lasts judges records as a lane does, so it may refuse what was accepted before
        by other settings; then one that accepts them goes on from there.
        """
        batches, todo = work.batches, work.batches.todo
        tries, lasts = 0, self.lasts and not (todo.start.chosen or todo.left_out)
        while True:
            done = batches.done
            try:
                if lasts:
                    running[:] = [self._run_lasting(work, planned)]
                else:
                    self._run_once(work, planned)
            except UnreadableError as error:
                tries = tries + 1 if batches.done == done else 1
                if tries == TRIES_MAX:
                    raise
                self._say(f"batch {batches.plan.first + batches.done} is tried again: {error}")
            except RefusedError as error:
                if not lasts:
                    raise
                lasts = False
                self._say(f"records are accepted as they were before: {error}")
            else:
                return

    def _run_once(self, work: _Work, planned: Lowered) -> None:
        todo = work.batches.todo
        lowered = self._judging(todo.start, planned)
        rows = emit(lowered, self.reader(todo.begin), todo.left_out)
        steering = Steering(self.host.spark, work.batches.next)
        self.runner.run(self._query(work, lowered, rows, steering))

    def _run_lasting(self, work: _Work, lowered: Lowered) -> LastingQuery:
        """Run the batches in a query like that of the lane, which it can take over."""
        todo = work.batches.todo
        settled_ms = todo.start.marker.boundary_ms
        rows = emit(lowered, self.reader(todo.begin), settled_ms=settled_ms)
        lasting = LastingQuery(work.batches.next, self.host.clock, self.stop)
        steering = Steering(self.host.spark, lasting.answer)
        query = self._query(work, lowered, rows, steering)

        def watch(engine: Engine) -> None:
            if not lasting.has_waited:  # the lane may have reported that it has started
                query.watch(engine)

        lasting.run(replace(query, watch=watch, end=lasting.release))
        return lasting

    def _query(self, work: _Work, lowered: Lowered, rows: DataFrame, steering: Steering) -> Query:
        batches, progress = work.batches, work.progress

        def watch(engine: Engine) -> None:
            read = batches.plan.pieces.offsets(batches.done)
            if progress.batches == 1:  # else it would be a query of all jobs of all batches
                read = min(engine.records_read(), progress.offsets)
            self.host.report(replace(progress, read=read, batches_done=batches.done))

        return Query(
            name=f"{self.settings.lane.fragment}.{self.settings.epoch}.rebuild",
            rows=rows,
            lowered=lowered,
            folder=work.folder,
            write=partial(batches.write, Inspector(lowered, self.again())),
            watch=watch,
            steering=steering,
            meter=self.host.meters.query(self.settings.lane.fragment, self.host.spark),
        )

    @staticmethod
    def _judging(start: Rebuild, lowered: Lowered) -> Lowered:
        """The plan that judges records anew, or accepts those that were accepted."""
        return lowered if start.chosen else as_accepted(lowered)

    def _say(self, text: str) -> None:
        _log.info("%s", text, extra={"fragment": str(self.settings.lane.fragment)})

"""The query of a started lane: rounds with new schemas, batches that are planned anew, errors."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Final, NoReturn, Protocol

from pyspark.sql import DataFrame

from pipeline.errors import MedusaError
from pipeline.ids import BatchId
from pipeline.markers.positions import Positions
from pipeline.spark.batch.arrow_rows import ArrowRows
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query.emit import emit
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.readers import Ranges, Reader
from pipeline.spark.run.background_job import BackgroundJob
from pipeline.spark.run.batch_loop import BatchLoop, LaneSink
from pipeline.spark.run.batch_sizer import BatchLimit
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.lost_data import in_batch
from pipeline.spark.run.outside import UnreadableError
from pipeline.spark.run.planned_batch import withdraw_batch
from pipeline.spark.run.query_runner import (
    Driver,
    Query,
    QueryRunner,
    RunningQuery,
    StoppingError,
    Write,
)
from pipeline.spark.run.rebuild import Log
from pipeline.spark.run.silent_partitions import SilentPartitions
from pipeline.spark.run.spark_errors import LostDataError
from pipeline.spark.run.steered_query import Plan, Steering
from pipeline.spark.run.topic_identity import TopicWatch

SETTLE_DEADLINE_S: Final = 60.0
WITHDRAWN_MAX: Final = 3
"""How often in a row a batch is planned anew because its records cannot be read."""

_log = logging.getLogger(__name__)


class WithSchemas(Protocol):
    """Runs with a plan, and again with each new schema that a batch contains."""

    def __call__(
        self, lowered: Lowered, read: Positions, run: Callable[[Lowered], None]
    ) -> Lowered:
        """All rounds read the partitions in `read`."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One run of a query: where, what it writes to, its batches, and what is done beside."""

    folder: Path
    sink: LaneSink
    plan: Plan
    watch: Callable[[], None]


@dataclass(frozen=True, slots=True)
class LaneQuery:
    """Runs the query of one lane in a checkpoint folder.

    Args:
        settings: of the lane.
        host: of its node.
        runner: runs its queries.
        planner: plans its batches.
        limit: of their size.
        write_job: writes batches in the background.
        topics: compares the ids of its topics.
        reader: reads its inputs as streams, from some positions on.
        again: reads ranges of them, for inspection.
        with_schemas: runs with a plan, and again.
        watch: called about once a second.
        stop: set when the lane is to stop.
        name: of its queries, which no other one of the node has.
    """

    settings: LaneSettings
    host: LaneHost
    runner: QueryRunner
    planner: LanePlanner
    limit: BatchLimit
    write_job: BackgroundJob
    topics: TopicWatch
    reader: Callable[[Positions], Reader]
    again: Callable[[], Callable[[Ranges], Reader]]
    with_schemas: WithSchemas
    watch: Callable[[], None]
    stop: threading.Event
    name: str

    def run(
        self,
        lowered: Lowered,
        folder: Path,
        sink: LaneSink,
        *,
        planned: bool,
        running: RunningQuery | None = None,
    ) -> None:
        """Run until an error or a stop, which raises too.

        Args:
            lowered: the fragment.
            folder: the checkpoint.
            sink: writes the batches.
            planned: whether the checkpoint contains the plan of the first batch.
            running: a query of this checkpoint, to be taken over; None: one is started.

        Raises:
            StoppingError: the lane was stopped.
            MedusaError: the query or the writing of a batch failed.
        """
        host, planner = self.host, self.planner
        with closing(SilentPartitions(host.kafka, planner, host.clock, self._label)) as silent:
            planner.silent({})

            def watch() -> None:
                self.watch()
                silent.poll()
                host.meters.note(self.settings.lane.fragment)

            loop = BatchLoop(
                planner=planner,
                sink=sink,
                shape=self.settings.fragment.shape,
                spark=host.spark,
                clock=host.clock,
                stop=self.stop,
                watch=watch,
                sample=self.limit.sample,
            )
            begun = _Run(folder, sink, loop.answer, watch)
            self._run_batches(lowered, begun, loop, silent, planned=planned, running=running)

    def _run_batches(
        self,
        lowered: Lowered,
        run: _Run,
        loop: BatchLoop,
        silent: SilentPartitions,
        *,
        planned: bool,
        running: RunningQuery | None,
    ) -> NoReturn:
        """Run the query, and again without partitions whose records are not answered."""
        sink, folder, withdrawn = run.sink, run.folder, 0
        planned = planned or running is not None  # one that runs asks for its next batch
        limits = self.limit.limits(sink.marker.end, self.settings.fragment.pace_ms)
        while True:
            loop.begin(lowered, folder, limits, planned=planned)
            last = sink.marker.batch
            try:
                self._run(lowered, run, running)
            except UnreadableError as error:
                withdrawn = withdrawn + 1 if sink.marker.batch == last else 1
                if withdrawn > WITHDRAWN_MAX or not loop.withdraw(folder):
                    raise
                again = f"batch {sink.marker.batch + 1} is planned anew: {error}"
                _log.warning("%s", again, extra={"fragment": self._label})
                silent.find(sink.marker.end, self.planner.position)
                planned, running = False, None
            else:  # the loop has no further batch since the lane is to stop
                raise StoppingError

    def run_planned(self, lowered: Lowered, folder: Path, sink: LaneSink) -> None:
        """Execute the batch that is planned in the checkpoint, alone.

        Raises:
            StoppingError, MedusaError: as by `run`.
        """
        try:
            self._run(lowered, _Run(folder, sink, _no_further_batch, self.watch))
        except UnreadableError:
            if not sink.undecided:  # the next start plans it anew
                withdraw_batch(folder, BatchId(sink.marker.batch + 1))
            raise
        self.write_job.wait(SETTLE_DEADLINE_S)

    def _run(self, lowered: Lowered, run: _Run, running: RunningQuery | None = None) -> None:
        """Run a query: the batch that is planned in the checkpoint, then those of its plan."""
        rounds: Iterator[Callable[[Lowered], None]] = repeat(partial(self._run_once, run))
        if running is not None:
            rounds = chain([partial(self._take_over, running, run)], rounds)

        def next_round(lowered: Lowered) -> None:
            next(rounds)(lowered)

        try:
            self.with_schemas(lowered, run.sink.marker.end, next_round)
        except LostDataError as error:
            self.topics.ask()()
            name, marker = self.settings.fragment.name, run.sink.marker
            log = Log(self.host.kafka, self.host.resolver.admin)
            gone = log.overtaken(marker, lowered, name)
            raise in_batch(error, gone, self.settings.on_change(marker)) from error
        finally:
            self._settle()

    def _run_once(self, run: _Run, lowered: Lowered) -> None:
        marker = run.sink.marker
        query = Query(
            name=self.name,
            rows=emit(lowered, self.reader(marker.end), settled_ms=marker.boundary_ms),
            lowered=lowered,
            folder=run.folder,
            write=self._writer(run.sink, lowered),
            watch=lambda _: run.watch(),
            steering=Steering(self.host.spark, run.plan),
            end=self.planner.end_query,
            meter=self.host.meters.query(self.settings.lane.fragment, self.host.spark),
        )
        self.runner.run(query)

    def _take_over(self, running: RunningQuery, run: _Run, lowered: Lowered) -> None:
        driver = Driver(
            write=self._writer(run.sink, lowered),
            watch=lambda _: run.watch(),
            end=self.planner.end_query,
            stop=self.stop,
        )
        running.take_over(driver, run.plan)

    def _writer(self, sink: LaneSink, lowered: Lowered) -> Write:
        inspector = Inspector(lowered, self.again())
        limit_bytes = self.settings.fragment.state_limit_bytes

        def write(rows: DataFrame, batch: int, engine: Engine) -> None:
            sink.write(ArrowRows(rows), batch, engine, inspector)
            if limit_bytes is not None:
                self.planner.state_measured(engine.state_bytes(), limit_bytes)

        return write

    def _settle(self) -> None:
        """Wait for the last batch to be written; if that fails, the next start repeats it."""
        try:
            self.write_job.wait(SETTLE_DEADLINE_S)
        except MedusaError as error:
            what = f"the last batch was not written: {error}"
            _log.info("%s", what, extra={"fragment": self._label})

    @property
    def _label(self) -> str:
        return str(self.settings.lane.fragment)


def _no_further_batch() -> None:
    """The plan of a query that executes one batch."""

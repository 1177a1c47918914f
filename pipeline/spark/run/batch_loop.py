"""What a lane does between its batches: wait for the next one, and pass event time on."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from pipeline.boundaries.next_batch import Batch, Limits, PassOn, Sample
from pipeline.boundaries.promise import watermark_for
from pipeline.clock import Clock
from pipeline.errors import RetryError, UnavailableError
from pipeline.ids import BatchId, Millis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.network.boxes.shape import Shape, Stateless
from pipeline.spark.batch.ports import BatchEngine, BatchInspector, BatchRows
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.planned_batch import (
    plan_first_batch,
    plan_next_batch,
    rewrite_batch,
    withdraw_batch,
)
from pipeline.spark.run.query_runner import StoppingError
from pipeline.spark.run.steered_query import Answer

_log = logging.getLogger(__name__)
WATCH_S = 1.0
"""How often `watch` is called while no query runs."""


class LaneSink(Protocol):
    """Takes in the batches of one lane: as `Sink`, and `TentativeSink`."""

    @property
    def marker(self) -> CommitMarker:
        """What the lane has reached."""

    @property
    def undecided(self) -> bool:
        """Whether what was written last failed, and may be visible later."""

    def plan(self, batch: Batch) -> None:
        """Take in the plan of the next batch."""

    def write(
        self, rows: BatchRows, batch: int, engine: BatchEngine, inspector: BatchInspector
    ) -> None:
        """Execute and write one batch."""

    def pass_on(self, boundary_ms: Millis) -> None:
        """Promise more without a batch; for a lane without state."""


@dataclass(frozen=True, slots=True)
class BatchLoop:
    """Plans the batches of one lane, before its query and in it.

    Args:
        planner: of the lane.
        sink: of the lane.
        shape: what it computes.
        spark: for the settings of a new checkpoint.
        clock: for the time of a planned batch.
        stop: set when the lane is to stop.
        watch: called about once a second while no query runs.
        sample: how many of the next records fit into a batch, None if none was sampled; asked
            before one that is much larger than the last ones, since their records may be, too.
    """

    planner: LanePlanner
    sink: LaneSink
    shape: Shape
    spark: SparkSession
    clock: Clock
    stop: threading.Event
    watch: Callable[[], None]
    sample: Callable[[Positions], int | None]

    def begin(self, lowered: Lowered, folder: Path, limits: Limits, *, planned: bool) -> None:
        """Begin a query: wait for its first batch, and write the plan into its checkpoint.

        Args:
            lowered: the fragment.
            folder: the checkpoint.
            limits: of the batches.
            planned: whether the checkpoint contains the plan of the first batch.

        Raises:
            StoppingError: the lane is to stop.
            MedusaError: event time could not be passed on, or the plan not be written.
        """
        marker = self.sink.marker
        self.planner.begin_query(marker, limits)
        if planned:
            return
        batch = self._next_before()
        watermark_ms, number = self._watermark(batch), BatchId(marker.batch + 1)
        if watermark_ms is None:
            watermark_ms = marker.eviction_ms
        now_ms = self.clock.now_ms()
        if number == 0:
            plan_first_batch(self.spark, folder, lowered, batch.end, watermark_ms, now_ms)
        else:
            if batch.begin:  # only the query's own batches can begin beyond the last one
                rewrite_batch(folder, marker.batch, lowered, {**marker.end, **batch.begin})
            plan_next_batch(folder, number, lowered, batch.end, watermark_ms, now_ms)
        self.sink.plan(batch)

    def withdraw(self, folder: Path) -> bool:
        """Withdraw the planned batch of a query that has ended without it.

        Its records cannot be read now, and nothing of it was written: it may be planned anew.

        Returns:
            Whether there was one; False also if a transaction may have been committed.
        """
        batch = BatchId(self.sink.marker.batch + 1)
        return not self.sink.undecided and withdraw_batch(folder, batch)

    def answer(self) -> Answer | None:
        """Wait for the next batch of the query; where it is, if it is to end.

        None if the lane is to stop: the query ends by itself, at once.

        Raises:
            MedusaError: event time could not be passed on.
        """
        while isinstance(found := self.planner.next(), PassOn | Sample):
            self._prepare(found)
        if found is None:
            if self.stop.is_set():
                return None
            return Answer(self.planner.position, None, is_batch=False)
        self.sink.plan(found)
        return Answer(found.end, self._watermark(found), begin=found.begin)

    def _next_before(self) -> Batch:
        """Wait for a batch while no query runs."""
        watched_s = self.clock.monotonic_s()
        while not self.stop.is_set():
            found = self.planner.next(WATCH_S)
            if isinstance(found, Batch):
                return found
            if found is not None:
                self._prepare(found)
            now_s = self.clock.monotonic_s()
            if found is None or now_s - watched_s >= WATCH_S:  # boundaries may come all the time
                self.watch()
                watched_s = now_s
        raise StoppingError

    def _prepare(self, what: PassOn | Sample) -> None:
        """Do what the plan of the next batch needs before."""
        if isinstance(what, PassOn):
            self.sink.pass_on(what.event_ms)
            return
        try:
            offsets = self.sample({**self.planner.position, **what.begin})
        except (RetryError, UnavailableError) as error:
            _log.warning("the next records could not be sampled: %s", error)
            offsets = None
        self.planner.sampled(offsets)

    def _watermark(self, batch: Batch) -> Millis | None:
        """The watermark that comes into force in a batch; None: that of the batch before."""
        if batch.event_ms is None or isinstance(self.shape, Stateless):
            return None
        return watermark_for(self.shape, batch.event_ms)

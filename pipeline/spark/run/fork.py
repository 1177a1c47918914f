"""A fork: a tentative lane, which goes on without what its stable lane waits for.

It begins at a checkpoint of the stable lane that runs in the same process: the files are linked,
and the commit marker of that batch is known, so nothing is read from Kafka for it. Without state
the marker is enough. It runs the same plan in a query of its own, claims nothing, and publishes
nothing but what its batches pass on.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, Steered
from pipeline.boundaries.profile import profile
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import BatchId, Offset, StreamName
from pipeline.lanes.start.facts import Unusable
from pipeline.markers.commit_marker import NO_BATCH, CommitMarker
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import Stateless
from pipeline.spark.query.lowered import AssignedTopic, Lowered, restricted, with_tentative
from pipeline.spark.run.background_job import BackgroundJob
from pipeline.spark.run.batch_sizer import BatchLimit, BatchSizer
from pipeline.spark.run.checkpoints import Checkpoints, FollowerFolder
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_query import LaneQuery
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.planned_batch import (
    identify,
    plan_first_batch,
    plan_next_batch,
    rewrite_batch,
    withdraw_batch,
)
from pipeline.spark.run.query_runner import QueryRunner, StoppingError
from pipeline.spark.run.spark_errors import translated
from pipeline.spark.run.topic_identity import TopicWatch, watch_topics
from pipeline.spark.write.tentative_sink import ForkBatch, TentativeSink

PREPARED_S: Final = 20.0
"""How long a checkpoint is awaited whose marker is known."""
POLL_S: Final = 0.02

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StableState:
    """The stable lane that a fork begins at.

    Args:
        folder: its checkpoint, which it uses.
        markers: its last committed markers, by batch; read while the lane goes on.
        inputs: of its queries.
        tentative: topics of tentative results that the fork may read, by input.
    """

    folder: Path
    markers: Callable[[], Mapping[BatchId, CommitMarker]]
    inputs: LaneInputs
    tentative: Mapping[StreamName, AssignedTopic] = field(default_factory=dict)


class Fork:
    """One fork of a stable lane. Single use.

    Args:
        settings: of the stable lane.
        host: of its node.
        stable: the lane, as far as the fork reads it.
        steered: how its event time moves at first.
        publish: called with each batch, on the thread of its query.
    """

    def __init__(
        self,
        settings: LaneSettings,
        host: LaneHost,
        stable: StableState,
        steered: Steered,
        publish: Callable[[ForkBatch], None],
    ) -> None:
        self._settings = settings
        self._host = host
        self._stable = stable
        self._publish = publish
        self._stop = threading.Event()
        self._label = str(settings.lane.fragment)
        own = FollowerFolder.new(host.node, settings.epoch)
        names, life, spark = settings.names, settings.life, host.spark.version
        self._number = own.number
        self._checkpoints = Checkpoints(host.checkpoints, names, life, spark, follower=own)
        self._folder = self._checkpoints.folder(settings.epoch)
        how = profile(settings.fragment, settings.topic_ids, life)
        self._planner = LanePlanner(how, host.clock, _unreported, self._label)
        self._planner.steer(steered)

    def steer(self, steered: Steered) -> None:
        """Change how its event time moves."""
        self._planner.steer(steered)

    @property
    def observed(self) -> tuple[LaneTime, Ends | None] | None:
        """Its event time, and the latest ends; None: it has not begun."""
        return self._planner.observed

    def request_stop(self) -> None:
        """Let the current batch finish, then return from `run`. Thread-safe."""
        self._stop.set()
        self._planner.stop()

    def run(self) -> None:
        """Run until `request_stop`; the checkpoint is removed then.

        Raises:
            MedusaError: it could not begin, or a batch failed.
        """
        write_job = BackgroundJob(f"fork {self._label}")
        try:
            with translated(self._folder):
                self._run(write_job)
        except StoppingError:
            return
        finally:
            self._host.news.leave(self._planner)
            self._planner.stop()
            write_job.close()
            self._checkpoints.discard()

    def _run(self, write_job: BackgroundJob) -> None:
        settings, host = self._settings, self._host
        inputs = self._stable.inputs.copy()
        is_stateless = isinstance(settings.fragment.shape, Stateless)
        lowered, marker = self._anew(inputs) if is_stateless else self._linked(inputs)
        names = settings.fragment.names
        topics = frozenset({names.redrive, *(one.topic for one in settings.fragment.inputs)})
        host.news.join(self._planner, topics, marker)
        sink = TentativeSink(
            marker,
            settings.fragment.shape,
            self._planner,
            host.resolver,
            self._finished,
            host.clock,
        )
        admin = host.resolver.admin
        watch = watch_topics(admin, settings.fragment, settings.topic_ids)
        sizer = BatchSizer(host.kafka, admin, host.clock)
        offered = {one.topic for one in self._stable.tentative.values()}
        stop = self._stop
        query = LaneQuery(
            settings=settings,
            host=host,
            runner=QueryRunner(stop),
            planner=self._planner,
            limit=BatchLimit(sizer, settings.fragment, offered),
            write_job=write_job,
            topics=watch,
            reader=inputs.reader,
            again=inputs.again,
            with_schemas=partial(
                inputs.with_schemas, partial(self._lowered_again, inputs, sink), self._label
            ),
            watch=partial(self._watch, watch),
            stop=stop,
            name=f"{self._label}.{settings.epoch}.fork.{self._number}",
        )
        if stop.is_set():
            raise StoppingError
        query.run(lowered, self._folder, sink, planned=True)

    def _lowered_again(self, inputs: LaneInputs, sink: TentativeSink) -> Lowered:
        """The plan with new schemas, to execute a batch again: from where it began."""
        marker = sink.begun
        lowered = inputs.lowered(self._settings, marker.sources)
        lowered = with_tentative(lowered, self._stable.tentative)
        end = marker.end
        rewrite_batch(self._folder, marker.batch, restricted(lowered, end), end)
        return lowered

    def _watch(self, topics: TopicWatch) -> None:
        """What it does about once a second, besides its batches.

        Raises:
            RetryError: an end is below its position; the stable lane finds out whether records are
                lost.
        """
        topics.poll()
        if self._planner.fallen is not None:
            raise RetryError("an input ends below what was read of it", place=self._settings.place)

    def _finished(self, batch: ForkBatch) -> None:
        self._publish(batch)
        self._planner.finished(batch.marker, batch.results.table.num_rows)

    def _linked(self, inputs: LaneInputs) -> tuple[Lowered, CommitMarker]:
        """Link the stable lane's checkpoint at a batch whose marker is known.

        A batch that reads nothing is planned after it, so that the query is begun, and waits.

        Raises:
            RetryError: there is none in time. BrokenInvariantError: it is not that of the marker.
        """
        epoch, what = self._settings.epoch, "linking the checkpoint of the stable lane"
        deadline = Deadline.after(self._host.clock, PREPARED_S, what)
        while not (self._stop.is_set() or deadline.passed):
            lowered = inputs.latest
            batch = self._checkpoints.link(epoch, self._stable.folder)
            marker = self._stable.markers().get(batch)
            if lowered is None or batch == NO_BATCH or marker is None:
                self._stop.wait(POLL_S)
                inputs.latest = self._stable.inputs.latest
                continue
            lowered = restricted(lowered, marker.end)
            self._check(marker, lowered)
            number, now_ms = BatchId(batch + 1), self._host.clock.now_ms()
            identify(self._folder)
            withdraw_batch(self._folder, number)
            lowered, marker = self._with_tentative(lowered, marker)
            end, watermark_ms = marker.end, marker.eviction_ms
            plan_next_batch(self._folder, number, lowered, end, watermark_ms, now_ms)
            return lowered, marker
        if self._stop.is_set():
            raise StoppingError
        raise RetryError(
            "the checkpoint of the stable lane could not be linked at a batch that was written",
            place=self._settings.place,
        )

    def _anew(self, inputs: LaneInputs) -> tuple[Lowered, CommitMarker]:
        """Begin in an empty checkpoint, at the last marker: without state there is nothing else.

        The stable lane itself may not have had a record yet. A batch that reads nothing is planned
        first, as in `_linked`.
        """
        found = self._stable.markers()
        marker = replace(found[max(found)], batch=NO_BATCH)
        lowered = inputs.latest or inputs.lowered(self._settings, marker.sources)
        folder = self._checkpoints.empty(self._settings.epoch)
        lowered, marker = self._reading(restricted(lowered, marker.end), marker)
        now_ms, end = self._host.clock.now_ms(), marker.end
        plan_first_batch(self._host.spark, folder, lowered, end, None, now_ms)
        return lowered, marker

    def _with_tentative(
        self, lowered: Lowered, marker: CommitMarker
    ) -> tuple[Lowered, CommitMarker]:
        """Plan and marker as of `_reading`; the last batch of the checkpoint ends there, too."""
        if not self._stable.tentative:
            return lowered, marker
        lowered, marker = self._reading(lowered, marker)
        rewrite_batch(self._folder, marker.batch, lowered, marker.end)
        return lowered, marker

    def _reading(self, lowered: Lowered, marker: CommitMarker) -> tuple[Lowered, CommitMarker]:
        """Plan and marker with the topics of tentative results, of which nothing was read.

        A fork that reads of them begins where its plan says, whatever is before.
        """
        topics = self._stable.tentative
        lowered = with_tentative(lowered, topics)
        unread = {
            InputPartition(stream, one.topic, partition): Offset(0)
            for stream, one in topics.items()
            for partition in range(one.partitions)
        }
        return lowered, replace(marker, end={**marker.end, **unread})

    def _check(self, marker: CommitMarker, lowered: Lowered) -> None:
        incarnation, epoch = marker.incarnation, self._settings.epoch
        found = self._checkpoints.of_follower(epoch, incarnation, lowered)
        if isinstance(found, Unusable):
            raise RetryError(found.why, place=self._settings.place)
        state = found.state
        if state is None or not state.is_at(marker.end, marker.eviction_ms):
            raise BrokenInvariantError(
                f"the state of batch {marker.batch} that was linked is not that of its marker",
                place=self._settings.place,
            )


def _unreported(_: LaneTime) -> None:
    """The stable lane reports the event time of the fragment."""

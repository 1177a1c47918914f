"""Metrics, offsets and watermarks of a batch, read from Spark's engine.

`foreachBatch` passes rows only. Metrics, offsets and watermarks are in the engine's own objects
once the batch has been executed; only this module reads them, so it isolates Spark's internals.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyarrow import Table
from pyspark.sql.streaming.query import StreamingQuery

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Millis, Offset, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.query.kinds import kind_of
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.metrics import BatchMetrics
from pipeline.spark.query.observed import Observations

_DROPPED = "numRowsDroppedByWatermark"
_STATE_SIZES = ("rocksdbSstFileSize", "stateMemory")


@dataclass(frozen=True)
class Engine:
    """Access to the engine's objects of one running query."""

    query: StreamingQuery
    lowered: Lowered

    def batch_facts(self, batch: int, rows: Table | None = None) -> BatchFacts:
        """Read the facts of the batch that was just executed; to be called inside `foreachBatch`.

        `rows`: its output rows.

        Raises:
            BrokenInvariantError: `rows` is None although the query is counted from its rows; or the
            batch is not in the checkpoint.
        """
        stream, metrics = self.stream, self.metrics(rows)
        stateful = self.lowered.traits.stateful
        # Only records can be late; a batch without any needs no traversal of the plan.
        dropped = stateful and metrics.records
        late = sum(_dropped(stream.lastExecution().executedPlan())) if dropped else 0
        return BatchFacts(
            batch=BatchId(batch),
            end=self._positions(self._offsets(stream, batch)),
            late_ms=self._watermark(stream, batch - 1) if stateful and batch else None,
            eviction_ms=self._watermark(stream, batch) if stateful else None,
            records=metrics.records,
            bad=metrics.bad,
            unknown=metrics.unknown,
            late=late,
            largest=metrics.largest,
            failed=metrics.failed,
            skipped=metrics.skipped,
        )

    def metrics(self, rows: Table | None = None) -> BatchMetrics:
        """Counts and event times of the batch that was just executed.

        Raises:
            BrokenInvariantError: as by `batch_facts`.
        """
        return kind_of(self.lowered).metrics(self.lowered, rows, self._observations)

    def _observations(self) -> Observations:
        """What Spark has observed of the batch that was just executed."""
        return dict(_observed(self.stream.lastExecution().observedMetrics()))

    def records_read(self) -> int:
        """Number of records that the query's jobs have read so far; 0 if Spark has no count.

        Records of a task are counted at the latest when it is done.
        """
        context = self.stream.sparkSession().sparkContext()
        jobs, store = context.statusTracker(), context.statusStore()
        try:
            return sum(
                int(store.lastStageAttempt(stage).inputRecords())
                for job in jobs.getJobIdsForGroup(str(self.query.runId))
                for stage in jobs.getJobInfo(job).get().stageIds()
            )
        except Py4JError:  # a stage that Spark dropped, or Java is gone, which the lane notices
            return 0

    def state_bytes(self) -> int:
        """The size of the state after the last batch, in files and in memory."""
        return sum(_state_bytes(self.stream.lastExecution().executedPlan()))

    def _positions(self, offsets: list[Any]) -> Positions:
        """Positions from the offsets of the sources: one JSON object for each leaf of the plan."""
        return positions(offsets, self.lowered)

    @cached_property
    def stream(self) -> Any:
        """The query's execution, an object of Java."""
        wrapped = self.query._jsq  # noqa: SLF001 - the only way to the engine's objects
        return wrapped.streamingQuery() if hasattr(wrapped, "streamingQuery") else wrapped

    def _entry(self, stream: Any, batch: int) -> Any:
        found = stream.offsetLog().get(batch)
        if not found.isDefined():
            raise BrokenInvariantError(f"the offsets of batch {batch} are not in the checkpoint")
        return found.get()

    def _offsets(self, stream: Any, batch: int) -> list[Any]:
        """The offsets of each source; read as one text, since each call into Java takes time."""
        return list(json.loads(str(self._entry(stream, batch).toString())))

    def _watermark(self, stream: Any, batch: int) -> Millis | None:
        reached = int(self._entry(stream, batch).metadataOpt().get().batchWatermarkMs())
        return Millis(reached) if reached > 0 else None


def positions(
    sources: Sequence[Mapping[str, Mapping[str, int]]], lowered: Lowered
) -> dict[InputPartition, Offset]:
    """Convert Spark's offsets (topic → partition → offset, for each leaf of the plan) to positions.

    A source with several leaves has the same offsets in each. Two sources may read one topic, so
    only the index of a leaf identifies its source.

    Raises:
        BrokenInvariantError: there are offsets of topics that the leaf's source does not read, or
        of other leaves.
    """
    found: dict[InputPartition, Offset] = {}
    if len(sources) != len(lowered.leaves):
        raise BrokenInvariantError(
            f"there are offsets of {len(sources)} leaves, the query has {len(lowered.leaves)}"
        )
    for name, offsets in zip(lowered.leaves, sources, strict=True):
        others = offsets.keys() - {topic.topic for topic in lowered.source(name).topics}
        if others:
            raise BrokenInvariantError(
                f"there are offsets of topics that input {name} does not read: {sorted(others)}"
            )
        for topic, partitions in offsets.items():
            for partition, offset in partitions.items():
                at = InputPartition(name, TopicName(topic), int(partition))
                if found.setdefault(at, Offset(offset)) != offset:
                    raise BrokenInvariantError(
                        f"one source has two positions: {found[at]} and {offset}",
                        place=f"input {name}, topic {topic}, partition {partition}",
                    )
    return found


def _observed(metrics: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Scala's Map[String, Row] as pairs; nulls are left out.

    A row is read as one JSON text: each call into the JVM takes a good part of a millisecond.
    """
    iterator = metrics.iterator()
    while iterator.hasNext():
        pair = iterator.next()
        name, row = pair._1(), pair._2()  # noqa: SLF001 - the parts of a Scala pair
        yield str(name), json.loads(str(row.json()))


def _dropped(plan: Any) -> Iterator[int]:
    """Number of rows that each stateful operator of a physical plan dropped as late."""
    return _metrics(plan, (_DROPPED,))


def _state_bytes(plan: Any) -> Iterator[int]:
    """Sizes of the state of each stateful operator of a physical plan."""
    return _metrics(plan, _STATE_SIZES)


def _metrics(plan: Any, names: Sequence[str]) -> Iterator[int]:
    """The values of some metrics, of each operator that has them."""
    metrics = plan.metrics()
    for name in names:
        if metrics.contains(name):
            yield int(metrics.apply(name).value())
    children = plan.children()
    for i in range(children.size()):
        yield from _metrics(children.apply(i), names)

"""Sink of a fork: passes the results of its batches on, and keeps its marker in memory.

Nothing is claimed, no marker is written and no dead letter: records that the fork refuses, or has
as late ones, are decided by the stable lane.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pipeline.boundaries.next_batch import Batch
from pipeline.boundaries.promise import promise
from pipeline.clock import Clock
from pipeline.ids import Millis
from pipeline.lanes.batch import Written, next_marker, passed_on
from pipeline.lanes.gaps import withheld_ms
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.network.boxes.shape import Shape
from pipeline.spark.batch.ports import BatchEngine, BatchInspector, BatchPlans, BatchRows, Schemas
from pipeline.spark.batch.results import NO_RESULTS, Results
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError


@dataclass(frozen=True, slots=True)
class ForkBatch:
    """An executed batch of a fork, or a promise without one.

    Args:
        marker: after it.
        results: what it has computed.
        elapsed_ms: since its rows were asked for; None: there was no batch, event time moved alone.
    """

    marker: CommitMarker
    results: Results
    elapsed_ms: int | None


class TentativeSink:
    """Takes in the batches of one fork. Not thread-safe; Spark runs one batch at a time.

    Args:
        first: the marker of the stable lane that the fork begins at.
        shape: what the lane computes.
        plans: of its batches.
        schemas: for ids that the query was not planned with; a missing one is not recorded.
        publish: called with each batch; an error from it ends the fork.
        clock: for durations, and the times of markers.
    """

    undecided = False

    def __init__(
        self,
        first: CommitMarker,
        shape: Shape,
        plans: BatchPlans,
        schemas: Schemas,
        publish: Callable[[ForkBatch], None],
        clock: Clock,
    ) -> None:
        self._marker = first
        self._begin: Positions = {}
        self._shape = shape
        self._plans = plans
        self._schemas = schemas
        self._publish = publish
        self._clock = clock

    @property
    def marker(self) -> CommitMarker:
        """After the last batch."""
        return self._marker

    @property
    def begun(self) -> CommitMarker:
        """The same, with the positions at which the present batch begins."""
        return replace(self._marker, end={**self._marker.end, **self._begin})

    def plan(self, batch: Batch) -> None:
        """Take in where a batch begins that does not go on where the last one ended.

        One that is planned anew may begin elsewhere.
        """
        self._begin = batch.begin

    def pass_on(self, boundary_ms: Millis) -> None:
        """Promise more without a batch; for a fork without state.

        Raises:
            MedusaError: it was not published.
        """
        marker = passed_on(self._marker, boundary_ms, self._clock.now_ms())
        self._publish(ForkBatch(marker, NO_RESULTS, None))
        self._marker = marker

    def write(
        self, rows: BatchRows, batch: int, engine: BatchEngine, inspector: BatchInspector
    ) -> None:
        """Execute one batch, and pass its results on.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            BrokenInvariantError: it was executed otherwise than planned.
            MedusaError: its results were not published.
        """
        started_s = self._clock.monotonic_s()
        table = rows.toArrow()
        facts = engine.batch_facts(batch, table)
        last = self.begun
        event_ms = self._plans.executed(last, facts)
        if facts.unknown:
            unknown = inspector.unknown_schemas(last.end, facts.end)
            if found := self._schemas.existing(unknown):
                raise UnknownSchemasError(found)
        results = Results(table).computed().above(withheld_ms(self._shape, last.gap))
        previous_ms = last.boundary_ms
        boundary_ms = promise(
            self._shape, eviction_ms=facts.eviction_ms, passed_ms=event_ms, previous_ms=previous_ms
        )
        marker = next_marker(
            last,
            facts,
            Written(results.table.num_rows, 0, 0),
            epoch=last.epoch,
            needed=last.needed,
            letters=(),
            output_ends=last.output_ends,
            boundary_ms=boundary_ms,
            now_ms=self._clock.now_ms(),
        )
        elapsed_ms = round(1000 * (self._clock.monotonic_s() - started_s))
        self._publish(ForkBatch(marker, results, elapsed_ms))
        self._marker, self._begin = marker, {}

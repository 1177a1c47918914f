"""Batches of a rebuild: executed for their state only, then checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from pipeline.ids import Millis
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.rebuild_pieces import RebuildPlan
from pipeline.markers.positions import InputPartition, Positions
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.ports import Schemas
from pipeline.spark.batch.rejected import Rejected, check_decided_alike
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.run.rebuild import NAMED_MAX, Rebuilding, look_up
from pipeline.spark.run.steered_query import Answer


@dataclass(slots=True)
class RebuildBatches:
    """Plans and executes the batches of a rebuild, one after the other.

    Args:
        todo: the rebuild.
        plan: its batches.
        schemas: the registry.
        place: names the fragment, for errors.
        finished: called after each batch, with how many are done.
        refused: records that a chosen rebuild has refused.
        done: number of batches whose state was checked.
    """

    todo: Rebuilding
    plan: RebuildPlan
    schemas: Schemas
    place: str
    finished: Callable[[int], None]
    refused: list[Rejected] = field(default_factory=list)
    done: int = 0

    def next(self) -> Answer | None:
        """The next batch, once the one before is done; None: there is none."""
        if self.done == self.plan.pieces.number:
            return None
        piece = self.plan.piece(self.done)
        return Answer(piece.end, piece.watermark_ms)

    def write(self, inspector: Inspector, rows: DataFrame, batch: int, engine: Engine) -> None:
        """Execute the next batch, and check its state; nothing is published.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            BrokenInvariantError: the state does not match the last commit marker.
            UnlikeError, RetryError: a user function refuses other records than before.
            RefusedError: previously accepted records cannot be read now.
        """
        todo, piece = self.todo, self.plan.piece(self.done)
        start, end = self.plan.pieces.end_of(self.done - 1), piece.end
        rows.write.format("noop").mode("overwrite").save()
        facts = engine.batch_facts(batch)
        if facts.unknown:
            unknown = inspector.unknown_schemas(start, end, todo.left_out)
            if found := look_up(unknown, self.schemas, chosen=todo.start.chosen):
                raise UnknownSchemasError(found)
        todo.check(self._without_partly(facts, inspector, start), piece, self.place)
        if todo.start.chosen:
            self._take_chosen(inspector, start, end, facts.failed if facts.bad else None)
            self.todo = with_progress(todo, facts.largest)
        else:

            def first() -> list[Rejected]:
                return inspector.rejected(start, end, None, todo.left_out, NAMED_MAX)

            todo.check_accepted(facts, first, inspector.lowered.functions, self.place)
        self.done += 1
        self.finished(self.done)

    def _without_partly(
        self, facts: BatchFacts, inspector: Inspector, start: Positions
    ) -> BatchFacts:
        """The facts without late rows, if those are of records that are partly late.

        Of a batch after a checkpoint: the records were partly late when they were read first.
        """
        if not facts.late or self.todo.start.since is None:
            return facts
        found = inspector.rejected(start, facts.end, facts.late_ms, self.todo.left_out)
        reasons = {one.why.reason for one in found}
        is_partly = Reason.PARTLY_LATE in reasons and Reason.LATE not in reasons
        return replace(facts, late=0) if is_partly else facts

    def _take_chosen(
        self,
        inspector: Inspector,
        start: Positions,
        end: Positions,
        failed: Mapping[str, int] | None,
    ) -> None:
        """Keep the records that a batch of a chosen rebuild has refused; `failed` None: none."""
        if failed is None:
            return
        refused = inspector.rejected(start, end, None, self.todo.left_out)
        check_decided_alike(failed, refused, inspector.lowered.functions)
        self.refused += refused


def with_progress(done: Rebuilding, largest: Mapping[InputPartition, Millis]) -> Rebuilding:
    """Set the largest event times of the rows in the state in the rebuild's marker.

    Those under another plan may be smaller, so that rows would seem no longer needed.
    """
    marker = done.start.marker
    progress = dict(marker.progress)
    for at, at_ms in largest.items():
        progress[at] = max(at_ms, progress.get(at, at_ms))
    return replace(done, start=replace(done.start, marker=replace(marker, progress=progress)))

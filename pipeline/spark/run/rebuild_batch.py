"""Batch of a rebuild: executed for its state only, then checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from pipeline.ids import Millis
from pipeline.markers.positions import InputPartition
from pipeline.spark.batch.facts import Engine
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.batch.ports import Schemas
from pipeline.spark.batch.rejected import Rejected, check_decided_alike
from pipeline.spark.batch.unknown_schemas import UnknownSchemasError
from pipeline.spark.run.rebuild import NAMED_MAX, Rebuilding, look_up


@dataclass(slots=True)
class RebuildBatch:
    """Executes the batch of a rebuild.

    Args:
        todo: the rebuild.
        schemas: the registry.
        place: names the fragment, for errors.
        refused: records that a chosen rebuild has refused.
    """

    todo: Rebuilding
    schemas: Schemas
    place: str
    refused: list[Rejected] = field(default_factory=list)

    def write(self, inspector: Inspector, rows: DataFrame, batch: int, engine: Engine) -> None:
        """Execute the batch, and check its state; nothing is published.

        Raises:
            UnknownSchemasError: plan again with them and run the batch again.
            BrokenInvariantError: the state does not match the last commit marker.
            UnlikeError, RetryError: a user function refuses other records than before.
            RefusedError: previously accepted records cannot be read now.
        """
        todo, end = self.todo, self.todo.start.marker.end
        rows.write.format("noop").mode("overwrite").save()
        facts = engine.batch_facts(batch)
        if facts.unknown:
            unknown = inspector.unknown_schemas(todo.begin, end, todo.left_out)
            if found := look_up(unknown, self.schemas, chosen=todo.start.chosen):
                raise UnknownSchemasError(found)
        todo.check(facts, self.place)
        functions = inspector.lowered.functions
        if not todo.start.chosen:

            def first() -> list[Rejected]:
                return inspector.rejected(todo.begin, end, None, todo.left_out, NAMED_MAX)

            todo.check_accepted(facts, first, functions, self.place)
        elif facts.bad:
            self.refused = inspector.rejected(todo.begin, end, None, todo.left_out)
            check_decided_alike(facts.failed, self.refused, functions)
        if todo.start.chosen:
            self.todo = with_progress(todo, facts.largest)


def with_progress(done: Rebuilding, largest: Mapping[InputPartition, Millis]) -> Rebuilding:
    """Set the largest event times of the rows in the state in the rebuild's marker.

    Those under another plan may be smaller, so that rows would seem no longer needed.
    """
    marker = done.start.marker
    progress = dict(marker.progress)
    for at, at_ms in largest.items():
        progress[at] = max(at_ms, progress.get(at, at_ms))
    return replace(done, start=replace(done.start, marker=replace(marker, progress=progress)))

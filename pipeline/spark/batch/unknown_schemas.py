"""Schemas that a batch contains and its query was not planned with."""

from pipeline.errors import MedusaError
from pipeline.ids import BatchId, SchemaHandle
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.positions import Positions
from pipeline.spark.batch.ports import BatchInspector, Schemas
from schemas import wire


class UnknownSchemasError(MedusaError):
    """A batch contains schemas that the query was not planned with; nothing was written.

    The lane plans again with them and runs the same batch once more.
    """

    code = "unknown-schemas"

    def __init__(self, handles: tuple[SchemaHandle, ...]) -> None:
        super().__init__(f"new schemas: {', '.join(wire.words(one) for one in handles)}")
        self.handles = handles


class SchemaCheck:
    """Looks up the unknown schemas of one lane's batches."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas
        self._given_up: BatchId | None = None

    def of_new(self, facts: BatchFacts, start: Positions, inspector: BatchInspector) -> None:
        """Look up the schemas of a batch that was not written yet.

        Those missing from the registry change nothing: their records are refused.

        When a producer has changed its schema, the ids in the batch metrics suffice, and an
        inspection would take longer than the rest of the change. If they do not suffice, all ids of
        the batch are looked up, so that no batch is aborted more than twice.

        Args:
            facts: of the batch.
            start: the positions before it.
            inspector: of the batch.

        Raises:
            UnknownSchemasError: with those that the registry has.
        """
        if not facts.unknown:
            return
        if self._given_up != facts.batch:
            self._given_up = facts.batch
            self._look_up(facts.unknown)
        self._look_up(inspector.unknown_schemas(start, facts.end))

    def of_written(self, facts: BatchFacts, start: Positions, inspector: BatchInspector) -> None:
        """Look up the schemas of a batch that was written: the plan may lack one that it had then.

        The arguments are those of `of_new`. One that the registry lacks is not recorded as missing,
        since its records were accepted.

        Raises:
            UnknownSchemasError: with those that the registry has.
        """
        if not facts.unknown:
            return
        unknown = inspector.unknown_schemas(start, facts.end)
        if found := self._schemas.existing(unknown):
            raise UnknownSchemasError(found)

    def _look_up(self, unknown: tuple[SchemaHandle, ...]) -> None:
        if found := self._schemas.look_up(unknown):
            raise UnknownSchemasError(found)

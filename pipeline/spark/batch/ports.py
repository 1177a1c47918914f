"""Protocols of the sink's dependencies: engine, inspection, schemas, topics, background job."""

from collections.abc import Callable
from typing import Protocol

from pyarrow import Table

from brokers.records import TopicDescription
from pipeline.ids import Millis, SchemaHandle, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.spark.batch.rejected import Rejected


class BatchRows(Protocol):
    """The rows of a batch, not computed yet."""

    def toArrow(self) -> Table:  # noqa: N802 - Spark's name
        """Execute the batch and return its rows."""


class BatchEngine(Protocol):
    """As in `facts.py`."""

    def batch_facts(self, batch: int, rows: Table | None = None) -> BatchFacts:
        """Read the facts of the batch that was just executed, with its output rows."""


class BatchPlans(Protocol):
    """As in `lane_planner.py`."""

    def executed(self, before: CommitMarker, facts: BatchFacts) -> Millis | None:
        """Compare an executed batch with its plan; returns the event time it brought into force."""


class BatchInspector(Protocol):
    """As in `inspection.py`."""

    def rejected(self, start: Positions, end: Positions, late_ms: Millis | None) -> list[Rejected]:
        """All refused and late records of a range."""

    def unknown_schemas(self, start: Positions, end: Positions) -> tuple[SchemaHandle, ...]:
        """All schemas in a range that the query was not planned with, most frequent first."""


class Schemas(Protocol):
    """As in `schema_resolver.py`."""

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Those schemas that the registry has; the others are not recorded as missing."""

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Those schemas that the registry has; the others are recorded as missing."""


class Topics(Protocol):
    """As in `topics.py`."""

    @property
    def answered(self) -> bool:
        """Whether the topics were described at least once."""

    def ask(self) -> Callable[[], None]:
        """Send a request that checks the topics' ids; the returned function awaits the answer."""

    def last(self, topic: TopicName) -> TopicDescription | None:
        """The latest description of a topic; None if there is none, or it did not exist."""


class Jobs(Protocol):
    """As in `background_job.py`."""

    def start(self, job: Callable[[], None]) -> None:
        """Run a job after the previous one has succeeded."""

    def follow(self, job: Callable[[], None]) -> None:
        """Run a job after the previous one, if that succeeds; does not wait."""

    def wait(self) -> None:
        """Wait until the last job has ended; re-raises its error."""

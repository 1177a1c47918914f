"""The engine, the second look and the other surroundings of a sink, as small protocols."""

from collections.abc import Callable
from typing import Protocol

from pyarrow import Table

from brokers.records import TopicDescription
from pipeline.ids import Millis, SchemaHandle, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.positions import Positions
from pipeline.spark.batch.rejected import Rejected


class BatchRows(Protocol):
    """The rows of a batch, not computed yet."""

    def toArrow(self) -> Table:  # noqa: N802 - Spark's name
        """Execute the batch and hand its rows over."""


class BatchEngine(Protocol):
    """As in `facts.py`."""

    def batch_facts(self, batch: int, rows: Table | None = None) -> BatchFacts:
        """The facts of the batch that was just executed and gave these rows."""


class SecondLook(Protocol):
    """As in `second_look.py`."""

    def rejected(self, start: Positions, end: Positions, late_ms: Millis | None) -> list[Rejected]:
        """All records of a range for the dead letters."""

    def unknown_schemas(self, start: Positions, end: Positions) -> tuple[SchemaHandle, ...]:
        """All schemas in a range that the query was not planned with, frequent ones first."""


class Schemas(Protocol):
    """As in `surroundings.py`."""

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Those of some schemas that the registry has; nothing is kept of the others."""

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Those of some schemas that the registry has; of the others it is kept that it has not."""


class Topics(Protocol):
    """As in `topics.py`."""

    @property
    def answered(self) -> bool:
        """Whether the topics were described at least once."""

    def ask(self) -> Callable[[], None]:
        """Ask whether the topics are the same; what comes back waits for the answer."""

    def last(self, topic: TopicName) -> TopicDescription | None:
        """A topic as it was last described; None if it was not, or did not exist."""


class Jobs(Protocol):
    """As in `background_job.py`."""

    def start(self, job: Callable[[], None]) -> None:
        """Run a job when the one before it has ended well."""

    def wait(self) -> None:
        """Wait until the last job has ended; raises what it raised."""

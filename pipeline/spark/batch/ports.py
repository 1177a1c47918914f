"""What a sink needs of the engine, of Kafka and of a second look, as small protocols.

`facts.py`, `second_look.py` and `brokers/kafka/` are the real ones; tests hand in twins.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from pyarrow import Table

from brokers.kafka.admin import Isolation
from brokers.kafka.transactions import Headers
from brokers.records import Ends, TopicDescription
from pipeline.clock import Deadline
from pipeline.ids import Millis, Offset, SchemaHandle, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.positions import Positions
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.batch.results import Record


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


class Transactions(Protocol):
    """As in `brokers/kafka/transactions.py`."""

    def look_at(self, topic: TopicName) -> None:
        """Learn how many partitions a topic has by now."""

    def begin(self) -> None:
        """Open a transaction."""

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = -1,
    ) -> None:
        """Add one record."""

    def send_many(self, topic: TopicName, records: Iterable[Record], headers: Headers = ()) -> int:
        """Add many records, each with the same headers; returns how many."""

    def commit(self, deadline: Deadline) -> None:
        """Make the transaction visible."""

    def abort(self, deadline: Deadline) -> None:
        """Give the transaction up."""


class Records(Protocol):
    """Records outside of transactions; as in `brokers/kafka/producer.py`."""

    @property
    def undelivered(self) -> int:
        """How many deliveries have failed."""

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Hand one record over; returns before it is delivered."""


class PartitionEnds(Protocol):
    """As in `brokers/kafka/admin.py`."""

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """What is known of those topics that exist."""

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Where the partitions of a topic end."""

    def end_offsets(self, topics: Iterable[TopicName], isolation: Isolation) -> Ends:
        """Where topics end, however many partitions they have."""


class Topics(Protocol):
    """As in `topics.py`."""

    @property
    def answered(self) -> bool:
        """Whether the topics were described at least once."""

    def ask(self) -> Callable[[], None]:
        """Ask whether the topics are the same; what comes back waits for the answer."""

    def last(self, topic: TopicName) -> TopicDescription | None:
        """A topic as it was last described; None if it was not, or did not exist."""


class Followed(Protocol):
    """As in `brokers/kafka/mirror.py`."""

    def follow(self, positions: Mapping[TopicName, Mapping[int, Offset]]) -> None:
        """Let the group's offsets become these positions soon; does not wait."""


class Jobs(Protocol):
    """As in `background_job.py`."""

    def start(self, job: Callable[[], None]) -> None:
        """Run a job when the one before it has ended well."""

    def wait(self) -> None:
        """Wait until the last job has ended; raises what it raised."""

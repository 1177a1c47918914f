"""Lowered fragment: plain data in Spark's terms, computed by `lower.py`, executed by `emit.py`.

The shape of a query, from the topics down:

    source (one per input) → decode, judge → [watermark, barrier] → steps of a path
        → core → steps → encode

A path leads from a source to one port of the stateful box (or to the output). A row has hidden
columns whose names begin with two underscores; `__reason` is null as long as the row is valid.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from pipeline.ids import (
    BoxName,
    Millis,
    SchemaHandle,
    SchemaId,
    SourceId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.markers.positions import Positions
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Sessions, Shape
from pipeline.network.boxes.sides import How
from pipeline.network.boxes.traits import Lateness, Traits
from pipeline.network.boxes.windows import Window
from pipeline.network.model import Origin, StartAt
from pipeline.network.types import Columns
from pipeline.user_code.function import Function

DECODED_MARK = "__decoded"
"""A field with a default, added to the reader schema: null after decoding means failure."""


class TopicRole(Enum):
    """Role of a topic among a lane's assigned inputs."""

    DATA = "data"
    REDRIVE = "redrive"
    """Only if records were ever redriven."""
    TENTATIVE = "tentative"
    """Only in a fork."""


@dataclass(frozen=True, slots=True)
class AssignedTopic:
    """One topic of a source, and the number of partitions read."""

    topic: TopicName
    partitions: int
    role: TopicRole


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """A writer's schema of values of the data topic.

    `unfit`: why its values cannot be decoded as the stream's; empty: they can.
    """

    handle: SchemaHandle
    json: str
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class EventTime:
    """Event-time expression of a source.

    `sql` computes it from the columns, `failed` is true where that would have raised; both None:
    the Kafka timestamp is the event time. `ahead_ms`: maximum distance beyond that timestamp.
    `text` is the expression as written.
    """

    sql: str | None
    failed: str | None
    ahead_ms: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One input of the fragment: one Spark source over several topics.

    `missing` are schemas recorded as missing from the registry: their records become dead letters.
    A schema in neither list, or of a redriven record, is looked up before the batch is written.
    """

    input: StreamName
    topics: tuple[AssignedTopic, ...]
    columns: Columns
    reader_json: str
    writers: tuple[WriterSchema, ...]
    missing: tuple[SchemaHandle, ...]
    event_time: EventTime
    start: StartAt | None
    """Begin of a first start; None for derived streams, which are read from their start."""
    id: SourceId
    skipped_ms: Millis | None = None
    """Records at or below this event time are skipped; see `MarkedSource`."""
    written_to: TopicId | None = None
    """Topic id in the headers of a derived stream's results; None for external streams."""
    has_ids: bool = False
    """Whether its records are identified by the ids of results, and not by their places."""

    @property
    def data(self) -> AssignedTopic:
        """The topic that carries the stream."""
        return next(topic for topic in self.topics if topic.role is TopicRole.DATA)

    def topic(self, role: TopicRole) -> TopicName | None:
        """The topic with a role; None if the source has none."""
        return next((t.topic for t in self.topics if t.role is role), None)


@dataclass(frozen=True, slots=True)
class Check:
    """Failure check of one expression of a step.

    Args:
        failed: SQL, never null: true where evaluating it failed.
        origin: its place in the document.
        text: as the user wrote it, on one line.
    """

    failed: str
    origin: Origin
    text: str


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep the rows for which `where` is true; set aside those of which a check failed."""

    where: str
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Project:
    """Compute the columns (name, SQL) of the next row from those of this one."""

    columns: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Call a user function with the rows; set aside those for which it fails."""

    box: BoxName
    function: Function

    checks = ()


@dataclass(frozen=True, slots=True)
class Explode:
    """A row for each element of an array, none if it is null; a row that is set aside stays one.

    Args:
        element: the column with the array, and then with an element of it.
        at: a new column with the element's index, from 0; None: there is none.
    """

    element: str
    at: str | None

    checks = ()


Step = Keep | Project | Call | Explode


@dataclass(frozen=True, slots=True)
class Path:
    """Path from one source through stateless steps to one port.

    Args:
        port: `only`, `left` or `right`.
        name: unique; see `Way` in `pipeline/planner/plan.py`.
        first: whether it is the first path of its source, which reports progress and invalid
            records, except those redriven to another path.
    """

    source: StreamName
    port: str
    name: str
    steps: tuple[Step, ...]
    first: bool

    @property
    def calls(self) -> bool:
        """Whether a row may fail for a reason that is not in the plan: in a user function."""
        return any(isinstance(step, Call) for step in self.steps)

    @property
    def as_records(self) -> tuple[Step, ...]:
        """The steps before the first explode, where a record is one row; only they can fail."""
        explodes = (n for n, step in enumerate(self.steps) if isinstance(step, Explode))
        return self.steps[: next(explodes, None)]

    @property
    def as_rows(self) -> tuple[Step, ...]:
        """The steps from the first explode on, where a record can be several rows."""
        return self.steps[len(self.as_records) :]


@dataclass(frozen=True, slots=True)
class GroupCore:
    """Group by a window or session, whose end is the event time of a result, and columns.

    Args:
        functions: (name, SQL of the aggregate call).
        positions: whether a function uses the positions of rows.
    """

    by: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]
    window: Window | SessionWindow
    positions: bool


@dataclass(frozen=True, slots=True)
class JoinCore:
    """Pair rows with equal `on` columns whose event times (left - right) are within the bounds.

    `how` decides which rows without a partner are emitted as well, with their own event time.
    """

    on: tuple[tuple[str, str], ...]
    lower_ms: int
    upper_ms: int
    how: How = How.INNER


@dataclass(frozen=True, slots=True)
class DeduplicateCore:
    """Keep the rows without an earlier one that is equal `by` columns and within the bound."""

    by: tuple[str, ...]
    within_ms: int


@dataclass(frozen=True, slots=True)
class AsOfCore:
    """Give each left row the latest right one with equal `on` columns that is not after it.

    Args:
        on: pairs of columns, left and right.
        within_ms: maximum age of that row at the left row's event time.
        how: whether a left row without a match is dropped (inner) or not (left).
        decided: digest of the settings that decide the match and its encoding.
        box: the name of the join.
    """

    on: tuple[tuple[str, str], ...]
    within_ms: int
    how: How
    decided: str = ""
    box: str = ""


Core = GroupCore | JoinCore | AsOfCore | DeduplicateCore
"""Spark's operator of the stateful box. The shape of the fragment relates it to event time."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding of result rows as Kafka records.

    `key_columns` empty and no core: the input's key bytes and partition are used. `partitions` is
    the actual number of the output topic.
    """

    value_columns: tuple[str, ...]
    value_json: str
    value_id: SchemaId
    key_columns: tuple[str, ...]
    key_json: str | None
    key_sql: str | None
    """Spark SQL of the key's bytes, if keys are not in Avro."""
    key_id: SchemaId | None
    partitions: int


@dataclass(frozen=True, slots=True)
class Lowered:
    """A whole lowered fragment; `traits` and `shape` are the fragment's."""

    sources: tuple[Source, ...]
    paths: tuple[Path, ...]
    traits: Traits
    shape: Shape
    core: Core | None
    after: tuple[Step, ...]
    encoding: Encoding
    ids: bool = False
    """Whether each result has an id."""
    labels: tuple[tuple[str, str], ...] = ()
    """Hidden columns of the core's results, with their names in reports of failed results."""

    @property
    def keeps_key(self) -> bool:
        """Whether a result is of one input row, so that it can have that record's key bytes."""
        return self.traits.from_one_row

    @property
    def names_rows(self) -> bool:
        """Whether a result is of one record and a table version (as-of join).

        Then its dead letter contains both, so that the result can be computed again.
        """
        return self.traits.lateness is Lateness.ANSWER

    @property
    def counted(self) -> bool:
        """Whether metrics are computed from the output rows, since each record is one.

        Else Spark observes the records, which go into a state, or to a function and its failures.
        """
        return self.core is None and not any(path.calls for path in self.paths)

    @property
    def origins(self) -> tuple[tuple[Source, AssignedTopic], ...]:
        """All topics that are read, each with its source."""
        return tuple((source, topic) for source in self.sources for topic in source.topics)

    def places(self, source: Source) -> dict[TopicRole, int]:
        """Indices of a source's topics in `origins`."""
        return {t.role: at for at, (other, t) in enumerate(self.origins) if other == source}

    def source(self, name: StreamName) -> Source:
        """The source of an input."""
        return next(source for source in self.sources if source.input == name)

    @property
    def leaves(self) -> tuple[StreamName, ...]:
        """The source of each leaf of Spark's plan, in the order of its offset log."""
        paths = tuple(path.source for path in self.paths)
        if isinstance(self.shape, Sessions):
            return (*paths, paths[0])
        return paths * 2 if self.traits.reads_twice else paths

    @property
    def functions(self) -> dict[str, tuple[BoxName, ...]]:
        """Path → its boxes that call user functions, if there are any."""
        return {
            path.name: tuple(step.box for step in path.steps if isinstance(step, Call))
            for path in self.paths
            if path.calls
        }

    def others(self, path: Path) -> tuple[Path, ...]:
        """The other paths from the same source."""
        return tuple(p for p in self.paths if p.source == path.source and p != path)

    def twin(self, path: Path) -> str:
        """The name of a path if another has the same source and port; else empty."""
        return path.name if any(p.port == path.port for p in self.others(path)) else ""


def with_tentative(lowered: Lowered, topics: Mapping[StreamName, AssignedTopic]) -> Lowered:
    """The fragment as a fork reads it: some inputs with the topics of their tentative results."""
    return replace(
        lowered,
        sources=tuple(
            replace(one, topics=(*one.topics, topics[one.input])) if one.input in topics else one
            for one in lowered.sources
        ),
    )


def as_accepted(lowered: Lowered) -> Lowered:
    """The fragment with checks disabled for records that were all accepted before.

    `ahead` was checked then, maybe with another setting; schemas missing now existed.
    """
    return replace(
        lowered,
        sources=tuple(
            replace(source, missing=(), event_time=replace(source.event_time, ahead_ms=None))
            for source in lowered.sources
        ),
    )


def restricted(lowered: Lowered, known: Positions) -> Lowered:
    """The fragment restricted to the partitions and topics of some positions.

    Partitions and topics that were added later are not read.
    """
    counts = Counter((at.input, at.topic) for at in known)
    return replace(
        lowered,
        sources=tuple(
            replace(
                source,
                topics=tuple(
                    replace(topic, partitions=count)
                    for topic in source.topics
                    if (count := counts[source.input, topic.topic])
                ),
            )
            for source in lowered.sources
        ),
    )

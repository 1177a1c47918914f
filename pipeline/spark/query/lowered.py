"""A fragment in Spark's terms, as plain data: `lower.py` decides it, `emit.py` carries it out.

The shape of a query, from the topics down:

    source (one per input) → decode, judge → [watermark, barrier] → steps of a path
        → core → steps → encode

A path leads from a source to one port of the stateful box (or to the output). A row carries hidden
columns whose names begin with two underscores; `__reason` is null as long as nothing is wrong.
"""

from collections import Counter
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
"""A field with a default, added to the reader schema: null after decoding means it failed."""


class TopicRole(Enum):
    """Why a topic is among a lane's assigned inputs."""

    DATA = "data"
    REDRIVE = "redrive"
    """Only where something was ever sent again."""
    ADVANCES = "advances"


@dataclass(frozen=True, slots=True)
class AssignedTopic:
    """One topic of a source with the partitions that are read."""

    topic: TopicName
    partitions: int
    role: TopicRole


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """A schema that values of the data topic were written with.

    `unfit` says why its values cannot be decoded as the stream's; empty: they can.
    """

    handle: SchemaHandle
    json: str
    unfit: str = ""


@dataclass(frozen=True, slots=True)
class EventTime:
    """How a row's event time is found.

    `sql` computes it from the columns, `failed` is true where that would have raised; both None:
    the Kafka timestamp is the event time. `ahead_ms`: how far it may lie beyond that timestamp.
    `text` is the expression as written.
    """

    sql: str | None
    failed: str | None
    ahead_ms: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Source:
    """One input of the fragment: one Spark source over several topics.

    `missing` are schemas that the registry is known not to have: their records go to the dead
    letters, whereas a schema that is in neither list, or that a record which is sent again has, is
    looked up before the batch is written.
    """

    input: StreamName
    topics: tuple[AssignedTopic, ...]
    columns: Columns
    reader_json: str
    writers: tuple[WriterSchema, ...]
    missing: tuple[SchemaHandle, ...]
    event_time: EventTime
    start: StartAt | None
    """Where a first start begins; None for derived streams, which are read from their start."""
    id: SourceId
    skipped_ms: Millis | None = None
    """Records at or below this event time are skipped; see `MarkedSource`."""
    written_to: TopicId | None = None
    """What the lane that writes a derived stream marks its results with; None for external ones."""

    @property
    def data(self) -> AssignedTopic:
        """The topic that carries the stream itself."""
        return next(topic for topic in self.topics if topic.role is TopicRole.DATA)

    def topic(self, role: TopicRole) -> TopicName | None:
        """The topic with a role, if the source has one."""
        return next((t.topic for t in self.topics if t.role is role), None)


@dataclass(frozen=True, slots=True)
class Check:
    """One expression of a step that can fail.

    Args:
        failed: SQL, never null: true where evaluating it failed.
        origin: where the user wrote it.
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
    """Hand the rows to a function of the user's; set aside those for which it fails."""

    box: BoxName
    function: Function

    checks = ()


@dataclass(frozen=True, slots=True)
class Explode:
    """A row for each element of an array, and none where it is null; what is set aside stays one.

    Args:
        element: the column that holds the array, and then an element of it.
        at: a new column with the element's place, from 0; None: there is none.
    """

    element: str
    at: str | None

    checks = ()


Step = Keep | Project | Call | Explode


@dataclass(frozen=True, slots=True)
class Path:
    """From one source through stateless steps to one port.

    Args:
        port: `only`, `left` or `right`.
        name: tells it from other paths; see `Way` in `pipeline/planner/plan.py`.
        first: whether it is the first path of its source: the one that reports progress and bad
            records, but for those that were sent again to another one.
    """

    source: StreamName
    port: str
    name: str
    steps: tuple[Step, ...]
    first: bool

    @property
    def calls(self) -> bool:
        """Whether a row may fail for a reason that is not in the plan: a function says so."""
        return any(isinstance(step, Call) for step in self.steps)

    @property
    def as_records(self) -> tuple[Step, ...]:
        """The steps as long as a record is at most one row: all that can fail are among them."""
        explodes = (n for n, step in enumerate(self.steps) if isinstance(step, Explode))
        return self.steps[: next(explodes, None)]

    @property
    def as_rows(self) -> tuple[Step, ...]:
        """The steps from where a record can be several rows."""
        return self.steps[len(self.as_records) :]


@dataclass(frozen=True, slots=True)
class GroupCore:
    """Group by a window or session, whose end is the event time of a result, and columns.

    Args:
        functions: (name, SQL of the aggregate call).
        positions: whether a function looks at the positions of rows.
    """

    by: tuple[str, ...]
    functions: tuple[tuple[str, str], ...]
    window: Window | SessionWindow
    positions: bool


@dataclass(frozen=True, slots=True)
class JoinCore:
    """Pair rows with equal `on` columns whose event times (left - right) lie within the bounds.

    `how` says which rows without a partner there are as well; their event time is their own.
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
        within_ms: how far before the left row's event time that one may lie.
        how: whether a left row for which there is none is dropped (inner) or not (left).
        decided: digest of what decides which one it is, and what is kept of it.
        box: the name of the join.
    """

    on: tuple[tuple[str, str], ...]
    within_ms: int
    how: How
    decided: str = ""
    box: str = ""


Core = GroupCore | JoinCore | AsOfCore | DeduplicateCore
"""What Spark executes for the stateful box. Event time moves it by the shape of the fragment."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """How result rows become Kafka records.

    `key_columns` empty and no core: the input's key bytes and partition pass. `partitions` is
    what the output topic really has.
    """

    value_columns: tuple[str, ...]
    value_json: str
    value_id: SchemaId
    key_columns: tuple[str, ...]
    key_json: str | None
    key_sql: str | None
    """Spark SQL of the key's bytes, where keys are not in Avro."""
    key_id: SchemaId | None
    partitions: int


@dataclass(frozen=True, slots=True)
class Lowered:
    """A whole fragment, ready to be emitted; `traits` and `shape` are the fragment's."""

    sources: tuple[Source, ...]
    paths: tuple[Path, ...]
    traits: Traits
    shape: Shape
    core: Core | None
    after: tuple[Step, ...]
    encoding: Encoding
    ids: bool = False
    """Whether each result carries an id."""
    told: tuple[tuple[str, str], ...] = ()
    """Hidden columns of the core's results, and what each is called where one is told that cannot
    be computed."""

    @property
    def keeps_key(self) -> bool:
        """Whether a result is a row of an input, so that it can have that record's key bytes."""
        return self.traits.from_one_row

    @property
    def names_rows(self) -> bool:
        """Whether a result is made of a row that stands for one record, and of what was held.

        Then a dead letter names that record, and holds what it takes to compute the result again.
        """
        return self.traits.lateness is Lateness.ANSWER

    @property
    def counted(self) -> bool:
        """Whether a batch is counted from its rows, since each record comes out as one.

        Else Spark observes the records: they go into a state, or to a function, which is told of
        failures by observing as well.
        """
        return self.core is None and not any(path.calls for path in self.paths)

    @property
    def origins(self) -> tuple[tuple[Source, AssignedTopic], ...]:
        """All topics that are read, each with the source that reads it."""
        return tuple((source, topic) for source in self.sources for topic in source.topics)

    def places(self, source: Source) -> dict[TopicRole, int]:
        """Where the topics of a source stand in `origins`."""
        return {t.role: at for at, (other, t) in enumerate(self.origins) if other == source}

    def source(self, name: StreamName) -> Source:
        """The source of an input."""
        return next(source for source in self.sources if source.input == name)

    @property
    def leaves(self) -> tuple[StreamName, ...]:
        """The source of each leaf of Spark's plan, in the order in which it notes their offsets."""
        paths = tuple(path.source for path in self.paths)
        if isinstance(self.shape, Sessions):
            return (*paths, paths[0])
        return paths * 2 if self.traits.reads_twice else paths

    @property
    def functions(self) -> dict[str, tuple[BoxName, ...]]:
        """Path → the boxes on it that call functions of users, where there are any."""
        return {
            path.name: tuple(step.box for step in path.steps if isinstance(step, Call))
            for path in self.paths
            if path.calls
        }

    def others(self, path: Path) -> tuple[Path, ...]:
        """The other paths from the same source."""
        return tuple(p for p in self.paths if p.source == path.source and p != path)

    def twin(self, path: Path) -> str:
        """The name of a path, if another one leads from the same source to the same port."""
        return path.name if any(p.port == path.port for p in self.others(path)) else ""


def as_accepted(lowered: Lowered) -> Lowered:
    """The fragment as it reads records that were all accepted before, whatever decided it then.

    How far one may lie ahead was decided once, maybe with another setting; a schema that is known
    to be missing now was there.
    """
    return replace(
        lowered,
        sources=tuple(
            replace(source, missing=(), event_time=replace(source.event_time, ahead_ms=None))
            for source in lowered.sources
        ),
    )


def restricted(lowered: Lowered, known: Positions) -> Lowered:
    """The fragment as it reads the partitions of some positions, and none that came later.

    Nor does it read a topic that came later.
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

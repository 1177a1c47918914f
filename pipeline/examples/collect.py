"""Collector of a network's output: results, dead letters, and boundaries.

Pure: records and a decoder for their values are passed in.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from brokers.records import KafkaRecord
from pipeline.errors import BrokenInvariantError
from pipeline.examples.example import Result
from pipeline.ids import BoxName, FragmentName, Millis, TopicName
from pipeline.lanes.dead_letters import PREFIX
from pipeline.markers.codec import decode_boundary
from pipeline.markers.signals import is_activity
from pipeline.names import boundaries_topic, stream_of_box
from pipeline.planner.plan import Plan
from pipeline.reference.compare import Row
from pipeline.reference.inputs import Place, Refusal
from schemas.logical import Native

Decode = Callable[[KafkaRecord], Mapping[str, Native]]
"""The fields of a record's value.

Raises `MedusaError` if the value cannot be decoded, which is a failure for Medusa's own output.
"""
NEWEST_KEPT = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_MAX = 300


@dataclass(frozen=True, slots=True)
class Watched:
    """The topics of a network that are checked: outputs, and dead letters."""

    outputs: Mapping[TopicName, Result]
    dead_letters: Mapping[TopicName, FragmentName]

    @property
    def all(self) -> tuple[TopicName, ...]:
        """All topics to read."""
        boundaries = tuple(boundaries_topic(topic) for topic in self.outputs)
        return (*self.outputs, *boundaries, *self.dead_letters)


def watched(plan: Plan, results: Iterable[Result]) -> Watched:
    """The topics to read for a planned network."""
    written = {fragment.output.name: fragment.output.topic for fragment in plan.fragments}
    return Watched(
        outputs={written[stream_of_box(result.box)]: result for result in results},
        dead_letters={fragment.names.dead_letters: fragment.name for fragment in plan.fragments},
    )


@dataclass(slots=True)
class Collected:
    """Output so far."""

    watched: Watched
    decode: Decode
    rows: dict[BoxName, list[Row]] = field(init=False)
    refusals: list[Refusal] = field(default_factory=list)
    newest: list[str] = field(default_factory=list)
    boundaries: dict[tuple[TopicName, str], Millis] = field(default_factory=dict)
    taken: int = 0

    def __post_init__(self) -> None:
        self.rows = {result.box: [] for result in self.watched.outputs.values()}

    def take(self, record: KafkaRecord) -> None:
        """Add one record.

        Raises:
            BrokenInvariantError: a result lacks a column or has a value that no column can have.
            MedusaError: a result cannot be decoded.
        """
        self.taken += 1
        if (result := self.watched.outputs.get(record.topic)) is not None:
            row = row_of(result.columns, self.decode(record))
            self.rows[result.box].append(row)
            self.newest = [*self.newest[1 - NEWEST_KEPT :], result.text(row)]
        elif (fragment := self.watched.dead_letters.get(record.topic)) is not None:
            self.refusals.append(refusal_of(fragment, record))
        elif record.value is not None:
            self._boundary(record, record.value)

    def counts(self) -> str:
        """The number of results of each kind, in words."""
        return ", ".join(
            f"{len(self.rows[result.box]):,} {result.name}"
            for result in self.watched.outputs.values()
        )

    def boundary(self, topic: TopicName) -> Millis | None:
        """The least promise of all writers of an output; None before the first."""
        return min((at for (of, _), at in self.boundaries.items() if of == topic), default=None)

    def complete_until(self) -> Millis | None:
        """The time up to which all outputs are complete; None as long as one has no boundary."""
        promises = [self.boundary(topic) for topic in self.watched.outputs]
        known = [promise for promise in promises if promise is not None]
        return min(known) if len(known) == len(promises) else None

    def _boundary(self, record: KafkaRecord, value: bytes) -> None:
        if is_activity(record.key):
            return
        boundary = decode_boundary(value, f"topic {record.topic}, offset {record.offset}")
        for topic in self.watched.outputs:
            if boundaries_topic(topic) == record.topic:
                self.boundaries[topic, boundary.writer] = boundary.boundary_ms


def refusal_of(fragment: FragmentName, record: KafkaRecord) -> Refusal:
    """The contents of a dead letter.

    Raises:
        BrokenInvariantError: it lacks a field that every dead letter has.
    """
    context = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in record.headers
        if name.startswith(PREFIX)
    }
    told = ", ".join(f"{name}={value}" for name, value in context.items())
    text = f"{record.topic}, offset {record.offset}: {told}"[:_TEXT_MAX]
    try:
        place = None
        if "offset" in context:
            place = Place(context["topic"], int(context["partition"]), int(context["offset"]))
        return Refusal(fragment, place, context.get("port", ""), context["reason"], text)
    except (KeyError, ValueError) as error:
        raise BrokenInvariantError(f"this is no dead letter of ours: {text}") from error


def row_of(columns: tuple[str, ...], fields: Mapping[str, Native]) -> Row:
    """The values of a result in the order of the reference's columns.

    Raises:
        BrokenInvariantError: it has other fields, or a value that no column can have.
    """
    if set(fields) != set(columns):
        raise BrokenInvariantError(
            f"a result has the fields {', '.join(fields)} instead of {', '.join(columns)}"
        )
    return tuple(_value(plain(fields[column])) for column in columns)


def _value(value: Native) -> str | int | float | bool | None:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise BrokenInvariantError(f"a result contains a {type(value).__name__}")
    return value


def plain(value: Native) -> Native:
    """Instants converted to ms since 1970 UTC, other values unchanged."""
    if isinstance(value, datetime):
        micros = (value - _EPOCH) // timedelta(microseconds=1)
        # An instant between two ms is wrong, and must remain different from both.
        return micros // 1_000 if micros % 1_000 == 0 else micros / 1_000
    return value

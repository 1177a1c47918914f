"""Gathers what the network writes: results, dead letters, and how far its boundaries have come.

Pure: it is handed records and a decoder for their values.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from brokers.records import KafkaRecord
from pipeline.demo.document import DISPATCHES, NOTIFICATIONS
from pipeline.demo.history import DISPATCH_COLUMNS, NOTIFICATION_COLUMNS
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis, TopicName
from pipeline.lanes.codec import decode_boundary
from pipeline.lanes.dead_letters import PREFIX
from pipeline.names import boundaries_topic, stream_of_box
from pipeline.planner.plan import Plan
from pipeline.reference.compare import Row, Value

Decode = Callable[[KafkaRecord], Mapping[str, Any]]
"""The fields of a record's value.

Raises `MedusaError` when the value cannot be decoded, which for output of ours is a failure.
"""
NEWEST_KEPT = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXT_MAX = 300


@dataclass(frozen=True, slots=True)
class Watched:
    """The topics of the toll network that tell whether it is right."""

    notifications: TopicName
    dispatches: TopicName
    dead_letters: tuple[TopicName, ...]

    @property
    def outputs(self) -> tuple[TopicName, ...]:
        """The topics with results."""
        return (self.notifications, self.dispatches)

    @property
    def all(self) -> tuple[TopicName, ...]:
        """Everything that has to be read."""
        boundaries = tuple(boundaries_topic(topic) for topic in self.outputs)
        return (*self.outputs, *boundaries, *self.dead_letters)


def watched(plan: Plan) -> Watched:
    """The topics to read for a planned toll network."""
    written = {fragment.output.name: fragment.output.topic for fragment in plan.fragments}
    return Watched(
        notifications=written[stream_of_box(NOTIFICATIONS)],
        dispatches=written[stream_of_box(DISPATCHES)],
        dead_letters=tuple(fragment.names.dead_letters for fragment in plan.fragments),
    )


@dataclass(slots=True)
class Collected:
    """What has come so far."""

    watched: Watched
    decode: Decode
    notifications: list[Row] = field(default_factory=list)
    dispatches: list[Row] = field(default_factory=list)
    dead_letters: list[str] = field(default_factory=list)
    newest: list[str] = field(default_factory=list)
    boundaries: dict[tuple[TopicName, str], Millis] = field(default_factory=dict)
    taken: int = 0

    def take(self, record: KafkaRecord) -> None:
        """Sort one record in.

        Raises:
            BrokenInvariantError: a result lacks a column or has a value that no column can have.
            MedusaError: a result cannot be decoded.
        """
        self.taken += 1
        if record.topic == self.watched.notifications:
            row = _row(NOTIFICATION_COLUMNS, self.decode(record))
            self.notifications.append(row)
            self._tell(row, told_notification)
        elif record.topic == self.watched.dispatches:
            row = _row(DISPATCH_COLUMNS, self.decode(record))
            self.dispatches.append(row)
            self._tell(row, told_dispatch)
        elif record.topic in self.watched.dead_letters:
            self.dead_letters.append(told_dead_letter(record))
        elif record.value is not None:
            self._boundary(record, record.value)

    def boundary(self, topic: TopicName) -> Millis | None:
        """The least promise of all writers of an output; None before the first."""
        promises = [at for (of, _), at in self.boundaries.items() if of == topic]
        return min(promises, default=None)

    def complete_until(self) -> Millis | None:
        """Up to when all outputs are complete; None as long as one says nothing."""
        promises = [self.boundary(topic) for topic in self.watched.outputs]
        known = [promise for promise in promises if promise is not None]
        return min(known) if len(known) == len(promises) else None

    def _boundary(self, record: KafkaRecord, value: bytes) -> None:
        boundary = decode_boundary(value, f"topic {record.topic}, offset {record.offset}")
        for topic in self.watched.outputs:
            if boundaries_topic(topic) == record.topic:
                self.boundaries[topic, boundary.writer] = boundary.boundary_ms

    def _tell(self, row: Row, words: Callable[[Row], str]) -> None:
        self.newest = [*self.newest[1 - NEWEST_KEPT :], words(row)]


def told_notification(row: Row) -> str:
    """A notification for people."""
    car, toll, segment, seen_at = row
    return f"{clock_time(seen_at)}  {car} pays {toll} on segment {segment}"


def told_dispatch(row: Row) -> str:
    """A dispatch for people."""
    location, car, tow_truck, stopped_at, _ = row
    return f"{clock_time(stopped_at)}  {tow_truck} tows {car} at {location}"


def told_dead_letter(record: KafkaRecord) -> str:
    """A dead letter for people: where it lies, and its context."""
    facts = [
        f"{name.removeprefix(PREFIX)}={(value or b'').decode(errors='replace')}"
        for name, value in record.headers
        if name.startswith(PREFIX)
    ]
    return f"{record.topic}, offset {record.offset}: {', '.join(facts)}"[:_TEXT_MAX]


def clock_time(at_ms: Value) -> str:
    """The time of day of an instant, UTC."""
    if not isinstance(at_ms, int | float):
        return str(at_ms)
    return f"{_EPOCH + timedelta(milliseconds=at_ms):%H:%M:%S}"


def _row(columns: tuple[str, ...], fields: Mapping[str, Any]) -> Row:
    """The values of a record in the order of the reference's columns."""
    if set(fields) != set(columns):
        raise BrokenInvariantError(
            f"a result has the fields {', '.join(fields)} instead of {', '.join(columns)}"
        )
    return tuple(_plain(fields[column]) for column in columns)


def _plain(value: Any) -> Value:
    """Instants become ms since 1970 UTC, the rest stays."""
    if isinstance(value, datetime):
        micros = (value - _EPOCH) // timedelta(microseconds=1)
        # An instant between two ms is wrong, and has to stay different from both.
        return micros // 1_000 if micros % 1_000 == 0 else micros / 1_000
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise BrokenInvariantError(f"a result holds a {type(value).__name__}")

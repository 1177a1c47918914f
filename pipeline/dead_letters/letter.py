"""A dead letter read back: the record, and what the headers say of it. Pure."""

import json
from dataclasses import dataclass
from uuid import UUID

from brokers.records import Headers, KafkaRecord
from pipeline.ids import Millis, Offset, SchemaGuid, SchemaHandle, SchemaId, TopicName
from pipeline.lanes.dead_letters import (
    HELD,
    NOT_COMPUTED,
    PREFIX,
    REDRIVEN_ORIGIN,
    REDRIVEN_PREFIX,
    check_format,
)
from schemas.json_value import JsonObject

UNKNOWN = "unknown"
"""The reason of a record that no lane wrote."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a record stands."""

    topic: TopicName
    partition: int
    offset: Offset


Identity = tuple[int, Offset, Place | None]
"""Partition and offset of a dead letter, and where its record stood at first."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One record of a dead-letter topic.

    `source` is what the fragment's source is called for ever, `input` a label of it.
    `record` is as it lies there; `timestamp_ms` is the Kafka timestamp that the refused record had.
    `at` is where the refused record stands, None for a result that
    no single record stands for; `first` where it stood before it was sent again for the first time.
    `row` is where the record of the left row stands that the result of an as-of join was made of;
    `held` is what the table said of it (None: nothing), `held_by` a digest of what decided that.
    `topic_id` is Kafka's id of the topic of `at` or `row`. `original` is the record of the row,
    once it was looked up. What a header does not say is empty, None, or attempt 1.
    """

    record: KafkaRecord
    timestamp_ms: Millis
    reason: str
    message: str
    box: str
    field: str
    input: str
    source: str
    port: str
    at: Place | None
    first: Place | None
    schema: SchemaHandle | None
    event_time_ms: Millis | None
    closed_ms: Millis | None
    version: int | None
    attempt: int
    row: Place | None = None
    topic_id: str = ""
    held: bytes | None = None
    held_by: str = ""
    original: KafkaRecord | None = None

    @property
    def number(self) -> tuple[int, Offset]:
        """Its own partition and offset, which name it."""
        return self.record.partition, self.record.offset

    @property
    def identity(self) -> Identity:
        """Its number and where its record stood at first; a topic made again numbers anew."""
        return *self.number, self.first

    @property
    def came_ms(self) -> Millis:
        """When the broker took it."""
        return self.record.timestamp_ms

    @property
    def expression(self) -> str:
        """The expression that could not be computed, as it stands in the document; or nothing."""
        before = f"{self.field}{NOT_COMPUTED}"
        return self.message.removeprefix(before) if self.message.startswith(before) else ""

    @property
    def computed_from(self) -> JsonObject | None:
        """What a failed result was to be computed from.

        None for a record, and for a value that no lane wrote.
        """
        if self.at is not None or not self.expression or self.record.value is None:
            return None
        try:
            found = json.loads(self.record.value)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def place(self) -> Place | None:
        """Where the record stands that is sent again; None: there is no such record."""
        return self.at or self.row

    @property
    def again(self) -> KafkaRecord:
        """What is sent again: the letter is the record, or names it."""
        return self.original or self.record

    @property
    def again_ms(self) -> Millis:
        """The Kafka timestamp of that record."""
        return self.timestamp_ms if self.original is None else self.original.timestamp_ms

    @property
    def original_headers(self) -> Headers:
        """The headers that the original came with."""
        headers = self.again.headers
        return tuple(h for h in headers if not h[0].startswith((PREFIX, REDRIVEN_PREFIX)))


def read(record: KafkaRecord) -> Letter:
    """What the headers of a record say; damaged ones say less.

    Raises:
        NewerFormatError: a newer version of Medusa wrote them.
    """
    said = {
        name: value.decode(errors="replace")
        for name, value in record.headers
        if value is not None and name.startswith((PREFIX, REDRIVEN_PREFIX))
    }
    found = {n.removeprefix(PREFIX): v for n, v in said.items() if n.startswith(PREFIX)}
    place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
    check_format(found.get("format"), place)
    event_time, closed, timestamp = (
        _number(found.get(name)) for name in ("event_time", "closed", "timestamp")
    )
    at = _place(found.get("topic", ""), found.get("partition"), found.get("offset"))
    row = told_place(found.get("row", ""))
    return Letter(
        record=record,
        timestamp_ms=record.timestamp_ms if timestamp is None else Millis(timestamp),
        reason=found.get("reason", UNKNOWN),
        message=found.get("message", ""),
        box=found.get("box", ""),
        field=found.get("field", ""),
        input=found.get("input", ""),
        source=found.get("source", ""),
        port=found.get("port", ""),
        at=at,
        first=told_place(said.get(REDRIVEN_ORIGIN, "")) or at or row,
        schema=_schema(found.get("schema")),
        event_time_ms=None if event_time is None else Millis(event_time),
        closed_ms=None if closed is None else Millis(closed),
        version=_number(found.get("version")),
        attempt=_number(found.get("attempt")) or 1,
        row=row,
        topic_id=found.get("topic_id", ""),
        held=next((value for name, value in record.headers if name == HELD), None),
        held_by=found.get("held_by", ""),
    )


def told_place(text: str) -> Place | None:
    """A place as `topic/partition/offset`; a topic's name holds no slash."""
    parts = text.split("/")
    return _place(*parts) if len(parts) == 3 else None  # noqa: PLR2004 - the three parts


def _place(topic: str, partition: str | None, offset: str | None) -> Place | None:
    numbers = _number(partition), _number(offset)
    if not topic or numbers[0] is None or numbers[1] is None:
        return None
    return Place(TopicName(topic), numbers[0], Offset(numbers[1]))


def _schema(text: str | None) -> SchemaHandle | None:
    number = _number(text)
    if number is not None:
        return SchemaId(number)
    try:
        return None if text is None else SchemaGuid(str(UUID(text)))
    except ValueError:
        return None


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None

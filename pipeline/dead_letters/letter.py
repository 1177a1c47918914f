"""Dead letter: the record, parsed with its headers. Pure."""

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
"""Reason of a record in the dead-letter topic that no lane wrote."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Place of a record in Kafka."""

    topic: TopicName
    partition: int
    offset: Offset


Identity = tuple[int, Offset, Place | None]
"""Partition and offset of a dead letter, and the place of its original."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One record of a dead-letter topic.

    `record` is the record itself; `timestamp_ms` is the Kafka timestamp of the refused record.
    `source` is the permanent id of the fragment's source, `input` its name. `at` is the place of
    the refused record, None for a failed result; `first` is its place before its first redrive.

    For a result of an as-of join: `row` is the place of the record of its left row, `held` the
    matching table version (None: none matched), `held_by` the digest of the settings that decided
    the match, `original` the record at `row`, once it was read. `topic_id` is Kafka's id of the
    topic of `at` or `row`. Without a header, a field is empty, None, or attempt 1.
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
        """Its partition and offset in the dead-letter topic."""
        return self.record.partition, self.record.offset

    @property
    def identity(self) -> Identity:
        """Unique also after the topic was recreated, which reuses the offsets."""
        return *self.number, self.first

    @property
    def appended_ms(self) -> Millis:
        """Its append time: the Kafka timestamp of the dead letter itself."""
        return self.record.timestamp_ms

    @property
    def expression(self) -> str:
        """The failed expression, as in the document; empty for other reasons."""
        before = f"{self.field}{NOT_COMPUTED}"
        return self.message.removeprefix(before) if self.message.startswith(before) else ""

    @property
    def computed_from(self) -> JsonObject | None:
        """Input values of a failed result; None for a record, and a value that no lane wrote."""
        if self.at is not None or not self.expression or self.record.value is None:
            return None
        try:
            found = json.loads(self.record.value)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def place(self) -> Place | None:
        """Place of the record that a redrive sends; None: there is no such record."""
        return self.at or self.row

    @property
    def redrive_record(self) -> KafkaRecord:
        """The record that a redrive sends: the original of a row, else the dead letter itself."""
        return self.original or self.record

    @property
    def redrive_timestamp_ms(self) -> Millis:
        """Kafka timestamp of the record that a redrive sends."""
        return self.timestamp_ms if self.original is None else self.original.timestamp_ms

    @property
    def original_headers(self) -> Headers:
        """Headers of the original, without ours."""
        headers = self.redrive_record.headers
        return tuple(h for h in headers if not h[0].startswith((PREFIX, REDRIVEN_PREFIX)))


def read(record: KafkaRecord) -> Letter:
    """Parse a record of a dead-letter topic; a damaged header counts as missing.

    Raises:
        NewerFormatError: a newer version of Medusa wrote them.
    """
    ours = {
        name: value.decode(errors="replace")
        for name, value in record.headers
        if value is not None and name.startswith((PREFIX, REDRIVEN_PREFIX))
    }
    found = {n.removeprefix(PREFIX): v for n, v in ours.items() if n.startswith(PREFIX)}
    place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
    check_format(found.get("format"), place)
    event_time, closed, timestamp = (
        _number(found.get(name)) for name in ("event_time", "closed", "timestamp")
    )
    at = _place(found.get("topic", ""), found.get("partition"), found.get("offset"))
    row = parse_place(found.get("row", ""))
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
        first=parse_place(ours.get(REDRIVEN_ORIGIN, "")) or at or row,
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


def parse_place(text: str) -> Place | None:
    """Parse `topic/partition/offset`; a topic name contains no slash."""
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

"""`streams`: the external topics, with schema, event time and start position."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pipeline import durations
from pipeline.errors import Problem, SchemaError
from pipeline.ids import Millis, StreamName, Subject, TopicName
from pipeline.names import value_subject
from pipeline.network import avro_types
from pipeline.network.boxes.common import StreamFacts
from pipeline.network.expressions import check, syntax
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import Expression, ExternalStream, Load, Origin, Silence, StartAt
from pipeline.network.scope import Scope, Source
from pipeline.network.term import Fault
from pipeline.network.topics import read_retention
from pipeline.network.types import Scalar

LATENESS_MS = durations.parse("5s")
"""Default: producers on a network are a few seconds apart."""
IDLE_AFTER_MS = durations.parse("3m")
"""Default: a Kafka producer drops a record after two minutes (`delivery.timeout.ms`) by default,
so records delivered after an outage are not older than that."""
TABLE_IDLE_AFTER_MS = durations.parse("1s")
"""Default with `load: first`, which declares a table: tables are silent by nature."""
AHEAD_MS = durations.parse("1h")
PARTITIONS = 4
PARTITIONS_MAX = 10_000

_ZONE = re.compile(r"(Z|z|[+-]\d\d:\d\d)$")


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """Location of a stream's schema.

    `kind` is `path` (a file, relative to the document) or `subject` (in the registry).
    """

    stream: StreamName
    kind: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema's JSON text, and its location, for messages."""

    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class StreamDraft:
    """A stream as written. `reference` and `event_time` are None if missing (reported)."""

    name: StreamName
    line: int
    topic: Text | None
    reference: SchemaReference | None
    event_time: Text | None
    lateness_ms: int
    idle_after_ms: int
    silence: Silence
    silence_declared: bool
    load: Load
    start: StartAt
    ahead_ms: int
    partitions: int
    retention_ms: int | None


def read_stream(name: StreamName, fields: Fields, partitions: int) -> StreamDraft:
    """Read a stream from its YAML."""
    topic = fields.text("topic", required=True)
    reference = read_reference(name, fields)
    load = Load(fields.choice("load", tuple(one.value for one in Load), Load.ALONG.value))
    idle_after_ms = TABLE_IDLE_AFTER_MS if load is Load.FIRST else IDLE_AFTER_MS
    draft = StreamDraft(
        name=name,
        line=fields.line,
        topic=topic,
        reference=reference,
        event_time=fields.text("event_time", required=True),
        lateness_ms=fields.duration("lateness", LATENESS_MS),
        idle_after_ms=fields.duration("idle_after", idle_after_ms, low=1),
        silence=Silence(
            fields.choice("silence", tuple(s.value for s in Silence), Silence.IDLE.value)
        ),
        silence_declared=fields.has("silence"),
        load=load,
        start=_read_start(fields),
        ahead_ms=fields.duration("ahead", AHEAD_MS),
        partitions=fields.integer("partitions", partitions, low=1, high=PARTITIONS_MAX),
        retention_ms=read_retention(fields),
    )
    fields.finish()
    return draft


def read_reference(name: StreamName, fields: Fields) -> SchemaReference | None:
    """`schema: FILE` or `subject: NAME`; one of the two."""
    path, subject = fields.text("schema"), fields.text("subject")
    if path is not None and subject is not None:
        fields.problem(f"{fields.what} has both schema and subject", subject.line, hint="keep one")
        return None
    if path is None and subject is None:
        if not fields.has("schema") and not fields.has("subject"):
            fields.problem(
                f"{fields.what} needs schema",
                fields.line,
                hint="schema: a file with the Avro schema, or subject: its name in the registry",
            )
        return None
    kind, found = ("path", path) if path is not None else ("subject", subject)
    if found is None or not found.value.strip():
        return None
    return SchemaReference(name, kind, found.value.strip(), found.line)


def _read_start(fields: Fields) -> StartAt:
    found = fields.text("start")
    if found is None or found.value in ("earliest", "latest"):
        return StartAt(found.value if found else "earliest")
    instant = _instant_ms(found.value.strip())
    if instant is not None:
        return StartAt("time", instant)
    fields.problem(
        f"start of {fields.what} cannot be {found.value!r}",
        found.line,
        choices=("earliest", "latest", "a time such as 2024-01-31T12:00:00Z"),
    )
    return StartAt("earliest")


def _instant_ms(text: str) -> Millis | None:
    """A time in RFC 3339 with its offset from UTC; None: invalid, or before 1970."""
    if not _ZONE.search(text):
        return None
    try:
        since = datetime.fromisoformat(text) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return Millis(since // timedelta(milliseconds=1)) if since >= timedelta(0) else None


@dataclass(frozen=True, slots=True)
class BuiltStream:
    """A stream after checking: `stream` if all of it is valid, `facts` if its columns are."""

    stream: ExternalStream | None
    facts: StreamFacts | None


def build_stream(
    draft: StreamDraft,
    schemas: Mapping[SchemaReference, SchemaText | Problem],
    report: Report,
) -> BuiltStream:
    """Check a stream against its schema; mistakes are reported."""
    schema = _schema(draft, schemas, report)
    if schema is None:
        if draft.event_time is not None:
            _event_time_faults(draft.name, draft.event_time, syntax(draft.event_time.value), report)
        return BuiltStream(None, None)
    event_time = _event_time(draft, schema, report)
    facts = StreamFacts(
        name=draft.name,
        columns=schema.columns,
        event_time_column=event_time.plain.name if event_time and event_time.plain else None,
        unreadable=dict(schema.unreadable),
        sound=event_time is not None,
    )
    if event_time is None or draft.topic is None or draft.reference is None:
        return BuiltStream(None, facts)
    topic = TopicName(draft.topic.value)
    by_subject = draft.reference.kind == "subject"
    stream = ExternalStream(
        name=draft.name,
        topic=topic,
        subject=Subject(draft.reference.value) if by_subject else value_subject(topic),
        schema_json=schema.text,
        columns=schema.columns,
        event_time=event_time,
        lateness_ms=draft.lateness_ms,
        idle_after_ms=draft.idle_after_ms,
        silence=draft.silence,
        start=draft.start,
        ahead_ms=draft.ahead_ms,
        partitions=draft.partitions,
        unreadable=schema.unreadable,
        retention_ms=draft.retention_ms,
        load=draft.load,
        silence_declared=draft.silence_declared,
    )
    return BuiltStream(stream, facts)


def _event_time(
    draft: StreamDraft, schema: avro_types.ReaderSchema, report: Report
) -> Expression | None:
    if draft.event_time is None:
        return None
    scope = Scope((Source(schema.columns, unreadable=dict(schema.unreadable)),))
    origin = Origin(field="event_time")
    checked = check(draft.event_time.value, scope, wants=Scalar.TIMESTAMP, origin=origin)
    faults, found = checked.faults, checked.expression
    if found is not None and not found.columns:  # a constant: no progress, or no valid record
        times = tuple(c.name for c in schema.columns if c.type is Scalar.TIMESTAMP)
        hint = "name the column that says when it happened"
        found, faults = None, (Fault("reads no column of the record", times, hint),)
    _event_time_faults(draft.name, draft.event_time, faults, report)
    return found


def _event_time_faults(
    stream: StreamName, text: Text, faults: Iterable[Fault], report: Report
) -> None:
    for fault in faults:
        report.add(
            f"event_time of stream {stream}: {fault.message}",
            text.line,
            choices=fault.choices,
            hint=fault.hint,
        )


def _schema(
    draft: StreamDraft,
    schemas: Mapping[SchemaReference, SchemaText | Problem],
    report: Report,
) -> avro_types.ReaderSchema | None:
    reference = draft.reference
    if reference is None:
        return None
    what = f"schema of stream {draft.name}"
    found = schemas.get(reference)
    if found is None:
        report.add(f"{what} is missing: {reference.value}", reference.line)
        return None
    if isinstance(found, Problem):
        report.add(
            found.message,
            found.line or reference.line,
            column=found.column,
            choices=found.choices,
            hint=found.hint,
        )
        return None
    try:
        return avro_types.read(json.loads(found.text))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        report.add(f"{what}, {found.origin}, is not JSON: {error.msg} ({where})", reference.line)
    except RecursionError:
        report.add(f"{what}, {found.origin}, is nested too deeply", reference.line)
    except SchemaError as error:
        report.add(f"{what}, {found.origin}: {error.message}", reference.line, hint=error.hint)
    return None

"""The headers of a dead letter: the context of a record that is otherwise kept byte for byte. Pure.

The original's own headers come first, unchanged; ours share one prefix. Numbers are decimal text.
A record that is sent again carries `redriven_from` and the few of these headers that route it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.formats import WRITTEN, check
from pipeline.ids import (
    BoxName,
    Millis,
    NetworkVersion,
    Offset,
    SchemaHandle,
    SourceId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.names import FragmentNames

PREFIX = "medusa.error."
REDRIVEN_PREFIX = "medusa.redriven."
REDRIVEN_FROM = f"{REDRIVEN_PREFIX}from"
"""Of a record that was sent again: `partition/offset` of its dead letter."""
REDRIVEN_ORIGIN = f"{REDRIVEN_PREFIX}origin"
"""Where the record stood at first: `topic/partition/offset`."""
ATTEMPT = f"{PREFIX}attempt"
HELD = f"{PREFIX}held"
"""What a table said of a row whose result could not be computed: bytes, in the form in which the
state keeps them. Missing where it said nothing."""
HELD_BY = f"{PREFIX}held_by"
"""Digest of what decided that. Both come along when the row's record is sent again."""
LATE = "late"
"""Reason: it counts in no result, since everything that it belongs to was closed."""
PARTLY_LATE = "partly_late"
"""Reason: it counts only in those of its windows that had not ended."""
LATENESS = frozenset({LATE, PARTLY_LATE})
"""The reasons of records that were good, but did not come in time."""
NOT_COMPUTED = " cannot be computed: "
"""Stands in the message about an expression, between its place in the document and its text."""
DIGITS_MAX = 9
MESSAGE_MAX = 500
"""Characters of a message; an expression may be as long as a document."""
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Context:
    """Where and why a record failed.

    `message` says it in one sentence; `field` is what failed in the document's box or stream.
    `schema`, `event_time_ms` and `closed_ms` (everything up to this event time was closed when the
    record came) stand where the reason is about them. `port` is empty when the record could not be
    judged at all; else only that path refused it, or had it, since it was sent again to that one.
    `topic`, `partition` and `offset` are where the original stands, `topic_id` and `source` what
    that topic and the fragment's source are called for ever; all None for a result that a stateful
    fragment could not compute, which no single record stands for.

    Of the result of an as-of join, one record is told that it was made of, that of its left row:
    `row` is where it stands, `input`, `port`, `source` and `topic_id` are its own, `first` is where
    it stood before it was sent again; `held` and `held_by` say what the table said of it.
    """

    reason: str
    message: str
    box: BoxName
    input: StreamName | None
    port: str
    topic: TopicName | None
    partition: int | None
    offset: Offset | None
    timestamp_ms: Millis
    version: NetworkVersion
    topic_id: TopicId | None = None
    source: SourceId | None = None
    field: str | None = None
    schema: SchemaHandle | None = None
    event_time_ms: Millis | None = None
    closed_ms: Millis | None = None
    attempt: int = 1
    row: str | None = None
    first: str | None = None
    held: bytes | None = None
    held_by: str | None = None


def headers(names: FragmentNames, context: Context, original: Headers) -> Headers:
    """The original's headers, then the context."""
    facts: tuple[tuple[str, str | int | None], ...] = (
        ("format", WRITTEN),
        ("reason", context.reason),
        ("message", _short(context.message)),
        ("participant", names.network.participant),
        ("network", names.network.name),
        ("fragment", names.fragment),
        ("box", context.box),
        ("field", context.field),
        ("input", context.input),
        ("port", context.port),
        ("source", context.source),
        ("topic", context.topic),
        ("topic_id", context.topic_id),
        ("partition", context.partition),
        ("offset", context.offset),
        ("row", context.row),
        ("held_by", context.held_by),
        ("timestamp", context.timestamp_ms),
        ("schema", context.schema),
        ("event_time", context.event_time_ms),
        ("closed", context.closed_ms),
        ("version", context.version),
        ("attempt", context.attempt),
    )
    kept = tuple(header for header in original if not header[0].startswith(PREFIX))
    ours = tuple((f"{PREFIX}{name}", str(v).encode()) for name, v in facts if v is not None)
    if context.first is not None:
        ours += ((REDRIVEN_ORIGIN, context.first.encode()),)
    if context.held is not None:
        ours += ((HELD, context.held),)
    return kept + ours


def attempt_of(original: Sequence[tuple[str, bytes | None]]) -> int:
    """Which attempt at a record of the redrive topic has failed now; `original` are its headers.

    A header that is missing or is no number counts as a first attempt.
    """
    told = next((v for name, v in original if name == ATTEMPT), None)
    return 1 + (int(told) if told and told.isdigit() else 1)


def check_format(told: str | None, place: str) -> None:
    """Make sure that this program understands a dead letter's headers.

    Args:
        told: what their `format` says; None or no number: somebody else wrote them.
        place: where the dead letter stands.

    Raises:
        NewerFormatError: a newer version of Medusa wrote them.
    """
    if told is not None and told.isdecimal() and len(told) <= DIGITS_MAX:
        check(int(told), "dead letter", place)


def _short(message: str) -> str:
    """One line of bounded length."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_MAX else f"{line[: MESSAGE_MAX - 1]}…"

"""Headers of a dead letter: the context of a record that is otherwise kept byte for byte. Pure.

The original's own headers come first, unchanged; ours share one prefix. Numbers are decimal text.
A redriven record has `redriven_from` and the few of these headers that route it.
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
"""Header of a redriven record: `partition/offset` of its dead letter."""
REDRIVEN_ORIGIN = f"{REDRIVEN_PREFIX}origin"
"""Header of a redriven record: `topic/partition/offset` of the original."""
ATTEMPT = f"{PREFIX}attempt"
HELD = f"{PREFIX}held"
"""The table version that matched a row whose result could not be computed, encoded as in the state.
Missing if none matched."""
HELD_BY = f"{PREFIX}held_by"
"""Digest of the settings that decided the match. A redriven record has both headers."""
NOT_COMPUTED = " cannot be computed: "
"""Part of the message about an expression, between its place in the document and its text."""
DIGITS_MAX = 9
MESSAGE_MAX = 500
"""Characters of a message; an expression may be as long as a document."""
Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Context:
    """Place and cause of a failed record.

    `message` is one sentence; `field` is the failed field of the document's box or stream.
    `schema`, `event_time_ms` and `closed_ms` (everything up to this event time was closed when the
    record came) are set if the reason concerns them. `port` is the path that refused the record, or
    to which alone it was redriven; empty if the record could not be decoded or has no valid event
    time. `topic`, `partition` and `offset` are the place of the original, `topic_id` and `source`
    the permanent ids of that topic and of the fragment's source; all None for a result that a
    stateful fragment could not compute, which has no single record.

    For a result of an as-of join: `row` is the place of the record of its left row, `input`,
    `port`, `source` and `topic_id` are those of that record, `first` is its original place if it
    was redriven; `held` and `held_by` are the matching version and its digest.
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


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A dead letter that is to be written: key and value of the original, with its context.

    `original`: the headers of the original.
    """

    context: Context
    key: bytes | None
    value: bytes | None
    original: Headers = ()


def headers(names: FragmentNames, context: Context, original: Headers) -> Headers:
    """Encode the headers: those of the original, then the context."""
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
    """Number of the failed attempt at a redriven record; `original` are its headers.

    A header that is missing or is no number counts as a first attempt.
    """
    attempt = next((v for name, v in original if name == ATTEMPT), None)
    return 1 + (int(attempt) if attempt and attempt.isdigit() else 1)


def check_format(version: str | None, place: str) -> None:
    """Check the format version of a dead letter's headers.

    Args:
        version: their `format`; None or no number: another program wrote them.
        place: of the dead letter.

    Raises:
        NewerFormatError: a newer version of Medusa wrote them.
    """
    if version is not None and version.isdecimal() and len(version) <= DIGITS_MAX:
        check(int(version), "dead letter", place)


def _short(message: str) -> str:
    """One line of bounded length."""
    line = " ".join(message.split())
    return line if len(line) <= MESSAGE_MAX else f"{line[: MESSAGE_MAX - 1]}…"

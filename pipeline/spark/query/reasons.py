"""Explanations of dead letters: message and facts, in addition to the reason. Pure.

The query computes only the reason; the rest is computed here, for the few records that need it.
"""

from dataclasses import dataclass

from pipeline import durations
from pipeline.errors import SchemaError
from pipeline.ids import Millis, SchemaHandle
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.dead_letters import NOT_COMPUTED
from pipeline.lanes.result_headers import WRITTEN_TO
from pipeline.planner.instants import instant
from pipeline.spark.query.hidden import Failed, reason_of
from pipeline.spark.query.lowered import Source
from schemas import avro, codec, wire

_FOREIGN = (
    f"no lane has written it: it has no header {WRITTEN_TO} with the id that Kafka gave its topic"
)


@dataclass(frozen=True, slots=True)
class Why:
    """Explanation of a dead letter.

    Args:
        box: that failed; empty if none did.
        field: the field of the document that failed: `where`, `select.toll`, `event_time`.
        message: one sentence.
        schema: the record's schema handle, if relevant.
        event_time_ms: of the record, if relevant.
        closed_ms: of a late record: everything up to this event time was closed.
    """

    reason: Reason
    message: str
    box: str = ""
    field: str = ""
    schema: SchemaHandle | None = None
    event_time_ms: Millis | None = None
    closed_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """A record as validated by the query: the word of the reason and the facts it refers to.

    `late_ms` is the event time up to which records of the batch were late.
    """

    word: str
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: Millis
    event_time_ms: Millis | None
    late_ms: Millis | None


def why(judged: Judged, source: Source) -> Why:
    """Explain a validated record."""
    reason = reason_of(judged.word)
    match reason:
        case Reason.EVALUATION_FAILED:
            return failed(judged.word)
        case Reason.LATE | Reason.PARTLY_LATE:
            return _late(reason, judged)
        case (
            Reason.EVENT_TIME_FAILED
            | Reason.EVENT_TIME_MISSING
            | Reason.EVENT_TIME_AHEAD
            | Reason.EVENT_TIME_BEFORE_1970
        ):
            return _event_time(reason, judged, source)
        case Reason.FOREIGN:
            return Why(reason, _FOREIGN)
        case _:
            return _undecoded(reason, judged, source)


def failed(word: str) -> Why:
    """Explain a failed expression."""
    found = Failed.read(word)
    text = f"{found.field}{NOT_COMPUTED}{found.text}"
    return Why(Reason.EVALUATION_FAILED, text, box=found.box, field=found.field)


def _undecoded(reason: Reason, judged: Judged, source: Source) -> Why:
    framed = wire.identified(judged.value, judged.headers, wire.Part.VALUE)
    if not isinstance(framed, wire.Framed):
        return Why(reason, framed.value)
    named = framed.schema
    if reason is Reason.SCHEMA_NOT_FOUND:
        return Why(reason, f"the registry has no schema with {wire.words(named)}", schema=named)
    return Why(reason, _decoding_problem(framed, source), schema=named)


def _decoding_problem(framed: wire.Framed, source: Source) -> str:
    """Decode again, only for the error message."""
    writer = next(writer for writer in source.writers if writer.handle == framed.schema)
    if writer.unfit:
        return writer.unfit
    try:
        codec.decode(avro.parse(writer.json), avro.parse(source.reader_json), framed.body)
    except SchemaError as error:
        return error.message
    return "Spark's Avro reader cannot read the value"


def _event_time(reason: Reason, judged: Judged, source: Source) -> Why:
    time = source.event_time
    match reason:
        case Reason.EVENT_TIME_FAILED:
            text = f"event_time cannot be computed: {time.text}"
        case Reason.EVENT_TIME_MISSING:
            text = f"event_time is null: {time.text}"
        case Reason.EVENT_TIME_BEFORE_1970:
            text = (
                f"event time {_time(judged.event_time_ms)} is not after 1970-01-01T00:00:00Z, "
                "where the timestamps of Kafka begin"
            )
        case _:
            text = (
                f"event time {_time(judged.event_time_ms)} is more than "
                f"{durations.format(time.ahead_ms or 0)} ahead of the record's Kafka timestamp "
                f"{_time(judged.timestamp_ms)}"
            )
    return Why(reason, text, field="event_time", event_time_ms=judged.event_time_ms)


def _late(reason: Reason, judged: Judged) -> Why:
    time, closed = judged.event_time_ms, judged.late_ms
    text = f"event time {_time(time)} came when everything up to {_time(closed)} was closed"
    if reason is Reason.PARTLY_LATE:
        text += ": it counts only in those of its windows that end later"
    return Why(reason, text, event_time_ms=time, closed_ms=closed)


def _time(at_ms: Millis | None) -> str:
    """A time as text; one outside of the years 1 to 9999 as a number."""
    try:
        return "unknown" if at_ms is None else instant(at_ms)
    except OverflowError:
        return f"{at_ms} ms"

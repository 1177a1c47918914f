"""`medusa dlq show`: decoded dead letters."""

import base64
import json

import click

from brokers.records import Headers
from pipeline.cli.commands.dlq.reason import reason_option
from pipeline.cli.completing import fragments
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time
from pipeline.clock import rfc3339
from pipeline.dead_letters.choose import LetterFilter
from pipeline.dead_letters.letter import Letter, Place
from pipeline.ids import Millis
from pipeline.operations.dead_letters.content import LetterContent, letter_content, newest_letters
from pipeline.operations.fragments import fragment_of
from schemas.json_value import Json, JsonObject, object_of

_HEX_BYTES = 48


@click.command("show")
@click.argument("fragment", shell_complete=fragments)
@reason_option("Only those with this reason.")
@click.option("--box", metavar="BOX", help="Only those that this box refused.")
@click.option("--from", "start", metavar="TIME", help="Only those that came from then on.")
@click.option("--to", "end", metavar="TIME", help="Only those that came before.")
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many."
)
@with_session
def command(
    session: Session,
    fragment: str,
    reason: str | None,
    box: str | None,
    start: str | None,
    end: str | None,
    *,
    limit: int,
) -> None:
    """Print the newest dead letters of FRAGMENT, the newest last, with what is wrong.

    A TIME is 2026-01-31T12:00:00Z, or 90s, 5m, 2h, 1d for so long ago. With -o json each letter is
    one line and complete: key, value and headers as base64 beside what could be decoded.

    \b
    Examples:
      medusa dlq show tolls.tow_dispatch
      medusa dlq show tow_dispatch --reason undecodable --from 1h -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    now_ms = session.clock.now_ms()
    selection = LetterFilter(
        reason,
        box,
        parse_time(start, now_ms) if start else None,
        parse_time(end, now_ms) if end else None,
    )
    with session.connect() as connections:
        one = fragment_of(fragment, connections)
        with session.printer.waiting("reading dead letters"):
            found = newest_letters(one, selection, limit, connections)
        for letter in found:
            content = letter_content(letter, connections)
            session.printer.record(_data(letter, content), _text(letter, content))
    if not found:
        session.printer.note("there are no such dead letters")


def _data(letter: Letter, content: LetterContent) -> JsonObject:
    record = letter.record
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": _time(letter.timestamp_ms),
        "came": _time(letter.appended_ms),
        "reason": letter.reason,
        "message": letter.message,
        "box": letter.box,
        "field": letter.field or None,
        "attempt": letter.attempt,
        "version": letter.version,
        "input": letter.input or None,
        "port": letter.port or None,
        "from": _place(letter.at),
        "first_from": _place(letter.first),
        "row": _place(letter.row),
        "schema": letter.schema,
        "event_time": _time(letter.event_time_ms),
        "closed": _time(letter.closed_ms),
        "key": content.key,
        "value": content.value,
        "problem": content.problem or None,
        "key_base64": _base64(record.key),
        "value_base64": _base64(record.value),
        "headers": _headers(record.headers),
        "cause": content.cause or None,
    }


def _text(letter: Letter, content: LetterContent) -> str:
    record = letter.record
    arrived = _time(record.timestamp_ms) if record.timestamp_ms >= 0 else "-"
    head = [f"{record.partition}@{record.offset}", str(arrived), letter.reason]
    head += [f"box {letter.box}"] if letter.box else []
    head += [letter.field] if letter.field else []
    head += [f"attempt {letter.attempt}"] if letter.attempt > 1 else []
    why = f"{letter.message}: {content.cause}" if content.cause else letter.message
    lines = ["  ".join(head), f"  why    {why}", f"  from   {_from(letter)}"]
    value = record.value
    if letter.computed_from is not None:
        return "\n".join([*lines, *_values(object_of(content.value))])
    lines.append(f"  key    {_compact(content.key)}")
    if content.problem and value is not None:
        more = f" … {len(value)} bytes" if len(value) > _HEX_BYTES else ""
        lines.append(f"  value  hex {value[:_HEX_BYTES].hex()}{more} ({content.problem})")
    else:
        lines.append(f"  value  {_compact(content.value)}")
    return "\n".join(lines)


def _values(inputs: JsonObject) -> list[str]:
    """One line for each input value of a result that could not be computed."""
    width = max(map(len, inputs), default=0)
    return [f"  with   {name:<{width}} = {_compact(value)}" for name, value in inputs.items()]


def _from(letter: Letter) -> str:
    if letter.place is None:
        return "a result, which no single record stands for"
    if letter.at is None:
        text = (
            f"a result: that of the left row in {_place_text(letter.place)}, input {letter.input}"
        )
    else:
        text = f"{_place_text(letter.at)} of {_time(letter.timestamp_ms)}, input {letter.input}"
    again = letter.first is not None and letter.first != letter.place
    return f"{text}; at first {_place_text(letter.first)}" if again and letter.first else text


def _place_text(place: Place) -> str:
    return f"{place.topic} {place.partition}@{place.offset}"


def _place(place: Place | None) -> JsonObject | None:
    if place is None:
        return None
    return {"topic": place.topic, "partition": place.partition, "offset": place.offset}


def _headers(headers: Headers) -> list[Json]:
    return [{"name": name, "value_base64": _base64(value)} for name, value in headers]


def _time(at_ms: Millis | None) -> str | int | None:
    """RFC 3339 text; milliseconds for a time outside of the years 1 to 9999."""
    try:
        return None if at_ms is None else rfc3339(at_ms)
    except (OverflowError, ValueError):
        return at_ms


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

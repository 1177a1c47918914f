"""`medusa tail`: consumer of a stream that prints decoded records."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from pipeline.cli.completing import streams
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time, time_text
from pipeline.counting import counted
from pipeline.errors import RetryError, UsageError
from pipeline.ids import Millis, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.decoding import DecodedRecord
from pipeline.operations.records.selection import Selector, parse_selection
from pipeline.operations.records.tail import Tail, TailLimits, TailStart
from pipeline.operations.streams import newest_schema, topic_of
from schemas.avro import AvroSchema, parse
from schemas.json_value import Json, JsonObject


@click.command("tail")
@click.argument("stream", shell_complete=streams)
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=1),
    metavar="N",
    help="The last N records that are there, then end; with --follow, go on with new ones.",
)
@click.option(
    "--from",
    "start",
    default="beginning",
    show_default=True,
    metavar="START",
    help="beginning, now, a time such as 2026-01-31T12:00:00Z, or 90s, 5m, 2h for so long ago.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    metavar="N",
    help="Print records from START on, wait for more, and end after N of them.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="End after so many seconds; with --count and too few records the exit code is 75.",
)
@click.option(
    "-f",
    "--follow/--no-follow",
    default=None,
    help="Whether to go on with new records: the default, except with -n.",
)
@click.option(
    "--where",
    metavar="EXPR",
    help="Only records for which this condition holds: an expression as in a filter box.",
)
@click.option(
    "--select",
    multiple=True,
    metavar="COLUMNS",
    help="Only these columns, as a,b; or NAME=EXPRESSION for a computed one. May be repeated.",
)
@with_session
def command(
    session: Session,
    stream: str,
    *,
    last: int | None,
    start: str,
    count: int | None,
    timeout: float | None,
    where: str | None,
    select: tuple[str, ...],
    follow: bool | None,
) -> None:
    """Print the records of STREAM, decoded: from its beginning, until Ctrl-C.

    STREAM is a stream of a deployed network, network.stream, or a topic. Only records of committed
    transactions are shown. With -o json each record is one line.

    \b
    Examples:
      medusa tail sightings -n 3
      medusa tail sightings --where "speed > 30 AND kind = 'car'" --select car,kmh=speed*3.6
      medusa tail toll-notifications --from now --count 5 --timeout 120
      medusa tail tolls.tow_dispatch --no-follow -o json | jq .value
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if last is not None and count is not None:
        raise UsageError(
            "-n and --count cannot be given together",
            hint="-n N shows the last N records; --count N waits for N records.",
        )
    deadline_s = session.clock.monotonic_s() + timeout if timeout else None
    with session.connect() as connections:
        topic = topic_of(stream, connections, without_catalog=True)
        given = where is not None or select
        selection = parse_selection(_schema(topic, connections), where, select) if given else None
        selector = Selector(connections.registry, selection)
        follows = last is None if follow is None else follow
        limits = TailLimits(_start(start, session.clock.now_ms()), last, deadline_s, follows)
        shown = 0
        with _note_undecided(selector, session):
            for record in Tail(topic, limits, selector, connections, session.clock).records():
                one = selector.decode(record)
                session.printer.record(_data(one), _line(one))
                shown += 1
                if shown == count:
                    return
    if count is not None and timeout is not None and shown < count:
        raise RetryError(
            f"only {shown} of {counted(count, 'record')} came within {timeout:g} s", place=topic
        )


def _schema(topic: TopicName, connections: Connections) -> AvroSchema:
    return parse(newest_schema(topic, connections).text)


def _start(text: str, now_ms: Millis) -> TailStart | Millis:
    ends = {one.value: one for one in TailStart}
    return ends[text] if text in ends else parse_time(text, now_ms)


@contextmanager
def _note_undecided(selector: Selector, session: Session) -> Iterator[None]:
    """Print, also after an error, how many records the condition had no value for."""
    try:
        yield
    finally:
        if selector.undecided:
            session.printer.note(
                f"{counted(selector.undecided, 'record')} not shown, since the condition has no "
                f"value; the first is {selector.first_undecided}"
            )


def _data(one: DecodedRecord) -> JsonObject:
    record = one.record
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": _time(one),
        "key": one.key,
        "value": one.value,
        **({"headers": one.headers} if record.headers else {}),
        **({"problem": one.problem} if one.problem else {}),
    }


def _line(one: DecodedRecord) -> str:
    value = one.value if isinstance(one.value, str) else _compact(one.value)
    key = one.key if isinstance(one.key, str) else _compact(one.key)
    place = f"{_time(one) or '-'}  {one.record.partition}@{one.record.offset}"
    problem = f"  ({one.problem})" if one.problem else ""
    return f"{place}  {key}  {value}{problem}"


def _time(one: DecodedRecord) -> str | None:
    at_ms = one.record.timestamp_ms
    return time_text(at_ms) if at_ms >= 0 else None


def _compact(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

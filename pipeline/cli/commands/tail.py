"""`medusa tail`: the records of a stream, decoded: all, the last ones, and those that come."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import click

from pipeline.cli.completing import streams
from pipeline.cli.connections import Connections
from pipeline.cli.decoding import Decoded
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.streams import newest_schema, topic_of
from pipeline.cli.tailing import Limits, Tail
from pipeline.cli.viewing import Look, view
from pipeline.counting import counted
from pipeline.errors import RetryError, UsageError
from pipeline.ids import TopicName
from schemas.avro import AvroSchema, parse


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
    over_at_s = session.clock.monotonic_s() + timeout if timeout else None
    limits = Limits(start, last, over_at_s, last is None if follow is None else follow)
    with session.connect() as connections:
        topic = topic_of(stream, connections, without_catalog=True)
        asked = where is not None or select
        wish = view(_schema(topic, connections), where, select) if asked else None
        look = Look(connections.registry, wish)
        shown = 0
        with _told_at_the_end(look, session):
            for record in Tail(topic, limits, look, connections, session.clock).records():
                one = look.shown(record)
                session.printer.record(one.data, _line(one))
                shown += 1
                if shown == count:
                    return
    if count is not None and timeout is not None and shown < count:
        raise RetryError(
            f"only {shown} of {counted(count, 'record')} came within {timeout:g} s", place=topic
        )


def _schema(topic: TopicName, connections: Connections) -> AvroSchema:
    return parse(newest_schema(topic, connections).text)


@contextmanager
def _told_at_the_end(look: Look, session: Session) -> Iterator[None]:
    """However a tail ends, it says which records its condition could not decide about."""
    try:
        yield
    finally:
        if look.unclear:
            session.printer.note(
                f"{counted(look.unclear, 'record')} not shown, since the condition has no value; "
                f"the first is {look.first}"
            )


def _line(one: Decoded) -> str:
    data = one.data
    value = data["value"] if isinstance(data["value"], str) else _compact(data["value"])
    key = data["key"] if isinstance(data["key"], str) else _compact(data["key"])
    place = f"{data['timestamp'] or '-'}  {data['partition']}@{data['offset']}"
    problem = f"  ({one.problem})" if one.problem else ""
    return f"{place}  {key}  {value}{problem}"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""`medusa tail`: consumer of a stream that prints decoded records."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.text import Text

from pipeline.cli.completing import streams
from pipeline.cli.options import with_session
from pipeline.cli.record_view import marked_data, marked_line, record_data, record_line
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time
from pipeline.counting import counted
from pipeline.errors import RetryError, UsageError
from pipeline.ids import Millis, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.selection import Selector, parse_selection
from pipeline.operations.records.tail import Tail, TailLimits, TailStart
from pipeline.operations.records.tail_tentative import TentativeLimits, TentativeTail
from pipeline.operations.streams import newest_schema, topic_of
from pipeline.reader.results import Start
from schemas.avro import AvroSchema, parse
from schemas.json_value import JsonObject

_STARTS = frozenset(one.value for one in Start)


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
@click.option(
    "--tentative",
    is_flag=True,
    help="Show tentative results as well, each record with a mark that says what it is.",
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
    tentative: bool,
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
      medusa tail tolls.car_speeds --tentative
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if last is not None and count is not None:
        raise UsageError(
            "-n and --count cannot be given together",
            hint="-n N shows the last N records; --count N waits for N records.",
        )
    if tentative and (last is not None or start not in _STARTS):
        raise UsageError(
            "--tentative can be given with --from beginning or --from now, and without -n",
            hint="what is tentative depends on all results before.",
        )
    deadline_s = session.clock.monotonic_s() + timeout if timeout else None
    with session.connect() as connections:
        topic = topic_of(stream, connections, without_catalog=True)
        given = where is not None or select
        selection = parse_selection(_schema(topic, connections), where, select) if given else None
        selector = Selector(connections.registry, selection)
        follows = last is None if follow is None else follow
        if tentative:
            merged = TentativeLimits(Start(start), deadline_s, follows)
            tail = TentativeTail(topic, merged, selector, connections, session.clock)
            found = _marked(tail)
        else:
            limits = TailLimits(_start(start, session.clock.now_ms()), last, deadline_s, follows)
            found = _plain(Tail(topic, limits, selector, connections, session.clock))
        shown = 0
        with _note_undecided(selector, session):
            for data, line in found:
                session.printer.record(data, line)
                shown += 1
                if shown == count:
                    return
    if count is not None and timeout is not None and shown < count:
        raise RetryError(
            f"only {shown} of {counted(count, 'record')} came within {timeout:g} s", place=topic
        )


def _plain(tail: Tail) -> Iterator[tuple[JsonObject, Text | str]]:
    for record in tail.records():
        one = tail.selector.decode(record)
        yield record_data(one), record_line(one)


def _marked(tail: TentativeTail) -> Iterator[tuple[JsonObject, Text | str]]:
    for found in tail.records():
        one = None if found.record is None else tail.selector.decode(found.record)
        yield marked_data(found, one), marked_line(found, one)


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

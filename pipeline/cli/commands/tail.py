"""`medusa tail`: the records of a stream, decoded: all, the last ones, and those that come."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import click

from brokers.kafka.reader import TopicReader
from brokers.records import KafkaRecord
from pipeline.cli.completing import streams
from pipeline.cli.connections import Connections
from pipeline.cli.decoding import Decoded, decoded
from pipeline.cli.newest import newest
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.streams import topic_of
from pipeline.cli.times import parse_time
from pipeline.clock import Clock
from pipeline.counting import counted
from pipeline.errors import RetryError, UsageError
from pipeline.ids import Offset, TopicName

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """What of a stream is shown, and when it ends.

    Args:
        last: so many records that are there already, the newest; None: all of them.
        count: it ends after so many records.
        over_at_s: it ends at this steady time.
        follow: whether it goes on with new records.
    """

    last: int | None
    count: int | None
    over_at_s: float | None
    follow: bool


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
@with_session
def command(
    session: Session,
    stream: str,
    last: int | None,
    start: str,
    count: int | None,
    timeout: float | None,
    *,
    follow: bool | None,
) -> None:
    """Print the records of STREAM, decoded: from its beginning, until Ctrl-C.

    STREAM is a stream of a deployed network, network.stream, or a topic. Only records of committed
    transactions are shown. With -o json each record is one line.

    \b
    Examples:
      medusa tail sightings -n 3
      medusa tail toll-notifications
      medusa tail toll-notifications --from now --count 5 --timeout 120
      medusa tail tolls.tow_dispatch --no-follow -o json | jq .value
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    if last is not None and count is not None:
        raise UsageError(
            "-n and --count cannot be given together",
            hint="-n N shows the last N records; --count N waits for N records.",
        )
    over_at_s = session.clock.monotonic_s() + timeout if timeout else None
    limits = Limits(last, count, over_at_s, last is None if follow is None else follow)
    with session.connect() as connections:
        topic = topic_of(stream, connections)
        starts = _starts(topic, start, connections, session.clock)
        shown = 0
        for record in _records(topic, starts, limits, connections, session.clock):
            one = decoded(record, connections.registry)
            session.printer.record(one.data, _line(one))
            shown += 1
            if shown == count:
                return
    if count is not None and timeout is not None and shown < count:
        raise RetryError(
            f"only {shown} of {counted(count, 'record')} came within {timeout:g} s", place=topic
        )


def _starts(
    topic: TopicName, start: str, connections: Connections, clock: Clock
) -> Mapping[int, Offset]:
    """Where to begin in each partition."""
    if start == "beginning":
        return connections.topics.start_offsets([topic])[topic]
    if start == "now":
        return connections.topics.end_offsets([topic])[topic]
    return connections.topics.offsets_for_time(topic, parse_time(start, clock.now_ms()))


def _records(
    topic: TopicName,
    starts: Mapping[int, Offset],
    limits: Limits,
    connections: Connections,
    clock: Clock,
) -> Iterator[KafkaRecord]:
    """What is there already, all of it or the last of it; then what comes, if that is wanted."""
    reader = connections.reader()
    ends = connections.topics.end_offsets([topic]).get(topic, {})
    if limits.last is not None:
        bounds = {
            partition: (min(starts.get(partition, end), end), end)
            for partition, end in ends.items()
        }
        yield from newest(reader, topic, bounds, limits.last, _in_time(topic, limits, clock))
        if not limits.follow:
            return
        starts = ends
    reader.assign({topic: starts})
    yield from _coming(reader, {} if limits.follow else ends, limits, clock)


def _in_time(topic: TopicName, limits: Limits, clock: Clock) -> Callable[[KafkaRecord], bool]:
    """Every record is wanted, until the time is over."""

    def wanted(_record: KafkaRecord) -> bool:
        if limits.over_at_s is not None and clock.monotonic_s() >= limits.over_at_s:
            raise RetryError(
                "the last records were not found in time",
                place=topic,
                hint="give a longer --timeout, or a later --from.",
            )
        return True

    return wanted


def _coming(
    reader: TopicReader, ends: Mapping[int, Offset], limits: Limits, clock: Clock
) -> Iterator[KafkaRecord]:
    """Records as they come, until a limit; `ends` counts only if the tail does not follow."""
    while limits.over_at_s is None or clock.monotonic_s() < limits.over_at_s:
        for record in reader.poll(_POLL_S):
            if limits.follow or record.offset < ends.get(record.partition, 0):
                yield record
        if not limits.follow and _reached(reader, ends):
            return


def _reached(reader: TopicReader, ends: Mapping[int, Offset]) -> bool:
    return all(
        position >= ends.get(partition, 0)
        for positions in reader.positions.values()
        for partition, position in positions.items()
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

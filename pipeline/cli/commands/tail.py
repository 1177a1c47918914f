"""`medusa tail`: the records of a stream, decoded, as they come."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import click

from brokers.kafka.reader import TopicReader
from brokers.records import KafkaRecord
from pipeline.cli.completing import streams
from pipeline.cli.connections import Connections
from pipeline.cli.decoding import Decoded, decoded
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.streams import topic_of
from pipeline.cli.times import parse_time
from pipeline.clock import Clock
from pipeline.counting import counted
from pipeline.errors import RetryError
from pipeline.ids import Offset, TopicName

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """When a tail ends: after so many records, after so many seconds, or at the present end."""

    count: int | None
    seconds: float | None
    follow: bool


@click.command("tail")
@click.argument("stream", shell_complete=streams)
@click.option(
    "--from",
    "start",
    default="beginning",
    show_default=True,
    metavar="START",
    help="beginning, now, a time such as 2026-01-31T12:00:00Z, or 90s, 5m, 2h for so long ago.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), help="End after so many records.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    help="End after so many seconds; with --count and too few records the exit code is 75.",
)
@click.option("--follow/--no-follow", default=True, help="Go on with new records (default).")
@with_session
def command(
    session: Session,
    stream: str,
    start: str,
    count: int | None,
    timeout: float | None,
    *,
    follow: bool,
) -> None:
    """Print the records of STREAM, decoded, until Ctrl-C.

    STREAM is a stream of a deployed network, network.stream, or a topic. Only records of committed
    transactions are shown. With -o json each record is one line.

    \b
    Examples:
      medusa tail toll-notifications
      medusa tail sightings --from 5m -n 10
      medusa tail tolls.tow_dispatch --no-follow -o json | jq .value
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    limits = Limits(count, timeout, follow)
    with session.connect() as connections:
        topic = topic_of(stream, connections)
        starts = _starts(topic, start, connections, session.clock)
        reader = connections.reader()
        reader.assign({topic: starts})
        ends = {} if follow else connections.topics.end_offsets([topic]).get(topic, {})
        shown = 0
        for record in _records(reader, ends, limits, session.clock):
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
    reader: TopicReader, ends: Mapping[int, Offset], limits: Limits, clock: Clock
) -> Iterator[KafkaRecord]:
    """Records as they come, until a limit; `ends` counts only if the tail does not follow."""
    over_at_s = clock.monotonic_s() + limits.seconds if limits.seconds else None
    while over_at_s is None or clock.monotonic_s() < over_at_s:
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

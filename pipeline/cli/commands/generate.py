"""`medusa generate`: made-up traffic, as JSON lines or as Avro records of a topic."""

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import click

from connectors.generators.catalogue import KINDS
from connectors.generators.disturbing import Sent, Shares, disturbed
from connectors.generators.encoding import as_line
from connectors.generators.kind import Kind
from connectors.generators.pacing import paced
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.stop_signals import StopSignals
from pipeline.counting import counted
from pipeline.errors import UsageError

_RECORDS = 1_000
"""How many records are made if neither their number nor a rate is given."""
_RECORDS_MAX = 1_000_000_000
_NOTE_EVERY_S = 5.0
_SHARE = click.FloatRange(0, 1)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be made. `rate`: of sending; None: as fast as possible."""

    kind: Kind
    records: int | None
    rate: float | None
    start_ms: int
    seed: int
    shares: Shares

    def sent(self) -> Iterator[Sent]:
        """The records; without an end if their number is not given."""
        made = self.kind.make(self.seed, self.start_ms, self.rate or self.kind.rate)
        sent = disturbed(made, self.kind.times, self.shares, self.seed)
        return itertools.islice(sent, self.records)


@click.command("generate")
@click.argument("kind", type=click.Choice(tuple(KINDS)), metavar="KIND")
@click.option(
    "--to",
    default="-",
    show_default=True,
    metavar="STREAM",
    help="A stream or topic, which gets Avro records; - is stdout, which gets JSON lines.",
)
@click.option(
    "--records", type=click.IntRange(1, _RECORDS_MAX), metavar="N", help="How many records."
)
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    metavar="R",
    help="Records a second, sent when their time has come. Without it: at once.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of what is left to chance.")
@click.option(
    "--start-at", metavar="TIME", help="The time at which the traffic begins, ISO 8601 with zone."
)
@click.option("--disorder", type=_SHARE, default=0.0, help="Share sent up to 3 s later.")
@click.option("--duplicates", type=_SHARE, default=0.0, help="Share sent twice.")
@click.option("--late", type=_SHARE, default=0.0, help="Share that is 1 to 5 minutes old.")
@click.option("--bad", type=_SHARE, default=0.0, help="Share that cannot be decoded.")
@click.option("--schema", "only_schema", is_flag=True, help="Print the Avro schema, and end.")
@click.option("-y", "--yes", is_flag=True, help="Also into a topic that a network writes.")
@with_session
def command(
    session: Session,
    kind: str,
    *,
    to: str,
    records: int | None,
    rate: float | None,
    seed: int,
    start_at: str | None,
    disorder: float,
    duplicates: float,
    late: float,
    bad: float,
    only_schema: bool,
    yes: bool,
) -> None:
    """Make up traffic of a KIND, and print it or send it to a stream.

    KIND is cars, sensors, sensors.calibrations, prices, prices.quotes, connections, calls or
    clicks. Without --rate 1,000 records, or --records, come at once, and the last one has just
    been made. With --rate they are sent as they are made, from now on, until Ctrl-C or --records.
    The same seed with the same --start-at and --rate gives the same records.

    \b
    Examples:
      medusa generate cars --records 5
      medusa generate clicks --rate 50 --bad 0.01 --late 0.02 --to clicks
      medusa generate calls --schema > schemas/call.avsc
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    found = KINDS[kind]
    if only_schema:
        session.printer.line(found.schema_json.rstrip())
        return
    least, most = found.rates
    if rate is not None and not least <= rate <= most:
        raise UsageError(f"--rate of {kind} is {least:g} to {most:g}")
    if records is None and rate is None:
        records = _RECORDS
    start_ms = _start_ms(start_at, found, records, rate, session)
    shares = Shares(disorder, duplicates, late, bad)
    wanted = _Wanted(found, records, rate, start_ms, seed, shares)
    with StopSignals() as stop:
        if to == "-":
            count = _print(_timely(wanted, session, stop), wanted)
            session.printer.note(f"{counted(count, 'record')} of {kind}")
        else:
            _send(wanted, to, session, stop, yes=yes)


def _start_ms(
    start_at: str | None, kind: Kind, records: int | None, rate: float | None, session: Session
) -> int:
    """The time at which traffic begins.

    Raises:
        UsageError: the text is no time with a zone.
    """
    if start_at is not None:
        try:
            start = datetime.fromisoformat(start_at)
        except ValueError as error:
            raise UsageError(f"--start-at: {start_at!r} is not an ISO 8601 time") from error
        if start.tzinfo is None:
            raise UsageError("--start-at needs a zone, as in 2026-01-01T00:00:00Z")
        return int(start.timestamp() * 1_000)
    now_ms = session.clock.now_ms()
    if rate is not None or records is None:
        return now_ms
    return now_ms - int(records / kind.rate * 1_000)


def _timely(wanted: _Wanted, session: Session, stop: StopSignals) -> Iterator[Sent]:
    """The records, each when its time has come, until somebody stops it; with progress."""
    clock, sent = session.clock, wanted.sent()
    if wanted.rate is not None:
        sent = paced(sent, wanted.start_ms, clock, stop.event.is_set)
    noted_s = clock.monotonic_s()
    for count, one in enumerate(sent):
        if stop.event.is_set():
            return
        if clock.monotonic_s() - noted_s >= _NOTE_EVERY_S:
            noted_s = clock.monotonic_s()
            of = f" of {wanted.records}" if wanted.records is not None else ""
            session.printer.note(f"{counted(count, 'record')}{of} so far")
        yield one


def _print(sent: Iterable[Sent], wanted: _Wanted) -> int:
    """Write JSON lines to stdout; returns how many."""
    count = 0
    for one in sent:
        # Bytes, since a bad record need not be text.
        sys.stdout.buffer.write(as_line(one, wanted.kind.event_time))
        if wanted.rate is not None:
            sys.stdout.buffer.flush()
        count += 1
    return count


def _send(wanted: _Wanted, to: str, session: Session, stop: StopSignals, *, yes: bool) -> None:
    # The drivers take a third of a second to import; only a topic needs them.
    from pipeline.cli.derived import confirm_derived  # noqa: PLC0415
    from pipeline.operations.records.generate import send_made, topic_encoding  # noqa: PLC0415
    from pipeline.operations.streams import topic_of  # noqa: PLC0415

    with session.connect() as connections:
        topic = topic_of(to, connections)
        encoding = topic_encoding(topic, wanted.kind, connections)
        if not yes:
            confirm_derived(topic, session, connections)
        count = send_made(_timely(wanted, session, stop), topic, encoding, connections)
    session.printer.show(
        {"kind": wanted.kind.name, "topic": topic, "sent": count},
        f"{counted(count, 'record')} of {wanted.kind.name} sent to {topic}",
    )

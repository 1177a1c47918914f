"""`medusa events`: the event log of the participant."""

from collections.abc import Callable

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.times import parse_time, span
from pipeline.clock import rfc3339
from pipeline.counting import counted
from pipeline.event_log.codec import as_json
from pipeline.event_log.event import EXPLANATIONS, EventKind, LoggedEvent, one_line
from pipeline.operations.event_log import EventLog, Selection
from schemas.json_value import JsonObject


@click.command("events")
@click.argument("about", required=False, metavar="[NAME]", shell_complete=parts)
@click.option("-f", "--follow", is_flag=True, help="Go on with new entries until Ctrl-C.")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="How many of the newest entries to begin with.",
)
@click.option("--from", "start", metavar="TIME", help="Only those since then.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice([kind.value for kind in EventKind]),
    metavar="KIND",
    help="Only of this kind, such as claimed; may be repeated.",
)
@click.option("--timeout", type=click.FloatRange(min=0.1), metavar="SECONDS", help="End then.")
@click.option("--explain", is_flag=True, help="Say below each entry what it means.")
@with_session
def command(
    session: Session,
    about: str | None,
    *,
    follow: bool,
    last: int,
    start: str | None,
    kinds: tuple[str, ...],
    timeout: float | None,
    explain: bool,
) -> None:
    """Show the event log: claims, moves, drains, deploys, pauses, redrives, schema changes.

    Each entry has a time, who did it, what it is about, why, and how long it took by parts. With
    NAME only those about a network, a fragment, network.fragment, a node or a subject. A TIME is
    2026-01-31T12:00:00Z, or 90s, 5m, 2h, 1d for so long ago. With -o json each entry is one line.

    \b
    Examples:
      medusa events
      medusa events tolls.tow_dispatch --explain
      medusa events --kind claimed --kind released --from 1h
      medusa events -f -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    since_ms = None if start is None else parse_time(start, session.clock.now_ms())
    selection = Selection(about, frozenset(map(EventKind, kinds)), since_ms, last)
    with session.connect() as connections:
        log = EventLog(connections, selection)
        found = log.written()
        for event in found:
            _show(session, event, explain=explain)
        if follow:
            for event in log.new(session.clock, _until(session, timeout)):
                _show(session, event, explain=explain)
    if not found and not follow:
        what = "" if about is None else f" about {about}"
        session.printer.note(f"the event log has no such entry{what}")
    if log.unreadable:
        number = counted(log.unreadable, "record")
        session.printer.note(f"{number} of its topic not shown: not an entry, or of a later Medusa")


def _until(session: Session, timeout: float | None) -> Callable[[], bool]:
    """Whether there is time left."""
    if timeout is None:
        return lambda: True
    end_s = session.clock.monotonic_s() + timeout
    return lambda: session.clock.monotonic_s() < end_s


def _show(session: Session, event: LoggedEvent, *, explain: bool) -> None:
    text, data = line(event), as_data(event)
    if explain and event.explanation:
        text += f"\n    {event.explanation}"
        data["explanation"] = event.explanation
    session.printer.record(data, text)


def as_data(event: LoggedEvent) -> JsonObject:
    """An entry for programs: the fields as they are written, with the time as text."""
    fields = as_json(event)
    del fields["at_ms"]
    return {"time": rfc3339(event.at_ms), **fields}


def line(event: LoggedEvent) -> str:
    """An entry as a line: time, kind, subject, by whom, why, facts, durations."""
    parts = [f"{name} {span(length_ms)}" for name, length_ms in event.parts_ms]
    facts = [f"{name}={value}" for name, value in event.facts if value != event.subject]
    texts = (
        f"{rfc3339(event.at_ms)}  {event.kind:<{_WIDTH}}  {event.subject}",
        f"by {event.by}",
        one_line(event.why),
        one_line(" ".join(facts)),
        ", ".join(parts),
    )
    return "  ".join(text for text in texts if text)


_WIDTH = max(len(kind) for kind in EXPLANATIONS)

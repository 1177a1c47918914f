"""`medusa dlq list`: counts of dead letters by fragment and reason."""

import click

from pipeline import durations
from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.cli.times import time_text
from pipeline.operations.dead_letters.counts import FragmentLetters, count_letters
from schemas.json_value import JsonObject

_COLUMNS = ("fragment", "letters", "redriven", "reasons", "oldest", "newest", "kept")


@click.command("list")
@click.argument("name", metavar="[NETWORK[.FRAGMENT]]", shell_complete=parts, default="")
@with_session
def command(session: Session, name: str) -> None:
    """Count the dead letters of every fragment, or of those that are named.

    Oldest and newest are when they came; kept is the retention of those that no rebuild needs,
    and the size limit of a partition. Redriven letters stay in it until they are purged or expire.

    \b
    Examples:
      medusa dlq list
      medusa dlq list tolls.tow_dispatch -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections, session.printer.waiting("reading dead letters"):
        found = count_letters(name, connections)
    for problem in found.problems:
        session.printer.note(f"{problem.place}: {problem.message}")
    rows = [_data(one) for one in found.fragments]
    table = Table(
        _COLUMNS,
        tuple(map(_cells, found.fragments)),
        "no network is deployed",
        frozenset({"letters", "redriven"}),
        spare=("kept", "oldest", "redriven", "newest"),
        below="reasons",
    )
    session.printer.show({"fragments": rows}, table)


def _data(one: FragmentLetters) -> JsonObject:
    names, found = one.fragment.names, one.summary
    return {
        "network": names.network.name,
        "fragment": names.fragment,
        "topic": names.dead_letters,
        "letters": found.count,
        "redriven": one.redriven,
        "reasons": dict(found.reasons),
        "oldest": time_text(found.oldest_ms),
        "newest": time_text(found.newest_ms),
        "retention_ms": one.retention_ms,
        "retention_bytes": one.retention_bytes,
        "max_message_bytes": one.max_message_bytes,
    }


def _cells(one: FragmentLetters) -> tuple[str, ...]:
    names, found, size = one.fragment.names, one.summary, one.retention_bytes
    reasons = ", ".join(f"{reason} {count}" for reason, count in found.reasons.items())
    kept = f"{durations.format(one.retention_ms)}, " + (
        f"{size} bytes a partition" if size is not None else "any size"
    )
    return (
        f"{names.network}.{names.fragment}",
        str(found.count),
        "?" if one.redriven is None else str(one.redriven),
        reasons or "-",
        time_text(found.oldest_ms) or "-",
        time_text(found.newest_ms) or "-",
        kept,
    )

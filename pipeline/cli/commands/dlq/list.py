"""`medusa dlq list`: how many dead letters there are, and why."""

from collections.abc import Container, Mapping
from typing import Any

import click

from pipeline import durations
from pipeline.cli.completing import parts
from pipeline.cli.connections import Connections
from pipeline.cli.letters import fragments_of, letters_of, redrive_topic, sent_again
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.streams import deployed_plans
from pipeline.cli.table import Table
from pipeline.clock import rfc3339
from pipeline.dead_letters.choose import Summary, summary
from pipeline.dead_letters.letter import Identity
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.planner.plan import Fragment, Plan

_COLUMNS = ("fragment", "letters", "redriven", "reasons", "oldest", "newest", "kept")


@click.command("list")
@click.argument("name", metavar="[NETWORK[.FRAGMENT]]", shell_complete=parts, default="")
@with_session
def command(session: Session, name: str) -> None:
    """Count the dead letters of every fragment, or of those that are named.

    Oldest and newest are when they came; kept says how long those are kept that no rebuild needs,
    and how much the topic holds. Redriven letters stay in it until they are purged or expire.

    \b
    Examples:
      medusa dlq list
      medusa dlq list tolls.tow_dispatch -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections, session.printer.waiting("reading dead letters"):
        plans = {plan.network: plan for plan in deployed_plans(connections)}
        fragments, lost, found = fragments_of(name, connections), [], []
        for fragment in fragments:
            plan, sent = plans[fragment.names.network], None
            try:
                sent = sent_again(redrive_topic(plan, fragment, connections), connections)
            except RefusedError as error:
                if len(fragments) == 1:
                    raise
                # It is no reason to hide what the others have.
                lost.append(f"{error.place}: {error.message}")
            found.append(_row(fragment, plan, sent, connections))
    for words in lost:
        session.printer.note(words)
    table = Table(
        _COLUMNS,
        tuple(_cells(row) for row in found),
        "no network is deployed",
        frozenset({"letters", "redriven"}),
        spare=("kept", "oldest", "redriven", "newest"),
        below="reasons",
    )
    session.printer.show({"fragments": found}, table)


def _row(
    fragment: Fragment, plan: Plan, sent: Container[Identity] | None, connections: Connections
) -> dict[str, Any]:
    """What is told of a fragment; `sent`: what was sent again, None: that is not known."""
    topic = fragment.names.dead_letters
    counted = summary(letters_of(fragment, connections), () if sent is None else sent)
    return {
        "network": fragment.names.network,
        "fragment": fragment.names.fragment,
        "topic": topic,
        **_counts(counted),
        **({"redriven": None} if sent is None else {}),
        "retention_ms": plan.retention_ms,
        **_limits(connections.topics.topic_configs([topic]).get(topic, {})),
    }


def _counts(found: Summary) -> dict[str, Any]:
    return {
        "letters": found.count,
        "redriven": found.redriven,
        "reasons": dict(found.reasons),
        "oldest": _time(found.oldest_ms),
        "newest": _time(found.newest_ms),
    }


def _limits(config: Mapping[str, str]) -> dict[str, int | None]:
    """The topic's limits; None: there is no such limit."""
    limits = {
        "retention_bytes": config.get("retention.bytes"),
        "max_message_bytes": config.get("max.message.bytes"),
    }
    return {name: None if v is None or int(v) < 0 else int(v) for name, v in limits.items()}


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    reasons = ", ".join(f"{reason} {count}" for reason, count in row["reasons"].items())
    age, size = row["retention_ms"], row["retention_bytes"]
    kept = f"{durations.format(age)}, " + (
        f"{size} bytes a partition" if size is not None else "any size"
    )
    return (
        f"{row['network']}.{row['fragment']}",
        str(row["letters"]),
        "?" if row["redriven"] is None else str(row["redriven"]),
        reasons or "-",
        row["oldest"] or "-",
        row["newest"] or "-",
        kept,
    )


def _time(at_ms: Millis | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)

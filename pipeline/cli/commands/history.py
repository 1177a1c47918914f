"""`medusa history`: versions of a network, or the nodes that have run a fragment."""

import click

from pipeline.cli.completing import parts
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.cli.times import span
from pipeline.clock import rfc3339
from pipeline.deploy.pause import parse_target
from pipeline.deploy.remove import deployed
from pipeline.deploy.versions import Version, history
from pipeline.event_log.places import Stay
from pipeline.ids import FragmentId
from pipeline.operations.event_log import stays_of

_STAYS = ("since", "node", "epoch", "why", "gap")
_COLUMNS = ("version", "deployed at", "by", "digest", "", "what changed")
_DIGEST_SHOWN = 12


@click.command("history")
@click.argument("name", metavar="NETWORK[.FRAGMENT]", shell_complete=parts)
@click.option(
    "-n",
    "--number",
    "--versions",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many of the newest.",
)
@with_session
def command(session: Session, name: str, number: int) -> None:
    """List the versions of NETWORK, the newest first, and what each changed.

    With NETWORK.FRAGMENT list the nodes that have run it, the newest first: since when, why, and
    how long nothing was written before (`gap`), as far back as the event log reaches.

    \b
    Examples:
      medusa history tolls
      medusa history tolls -n 100 -o json
      medusa history tolls.tow_dispatch
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    network, fragment = parse_target(name, session.participant)
    with session.connect() as connections:
        if fragment is not None:  # also of a network that was destroyed
            found_stays = stays_of(FragmentId(network, fragment), connections)[-number:]
            _show_stays(session, name, found_stays[::-1])
            return
        record = deployed(network, connections.catalog)
        found = history(record, connections.catalog, number)
    rows = tuple(_row(one, record.network.participant) for one in found)
    session.printer.show(
        {
            "network": record.network.name,
            "versions": [
                {
                    "version": one.record.version,
                    "deployed_at": rfc3339(one.record.deployed_at_ms),
                    "by": record.network.participant,
                    "digest": one.record.digest,
                    "deployed": one.deployed,
                    "changed": one.changed,
                }
                for one in found
            ],
        },
        Table(_COLUMNS, rows, "no version", frozenset({"version"})),
    )


def _show_stays(session: Session, fragment: str, found: tuple[Stay, ...]) -> None:
    rows = tuple(
        (rfc3339(one.since_ms), one.node, one.epoch, one.why, _gap(one.gap_ms)) for one in found
    )
    session.printer.show(
        {
            "fragment": fragment,
            "nodes": [
                {
                    "since": rfc3339(one.since_ms),
                    "node": one.node,
                    "epoch": int(one.epoch) if one.epoch.isdigit() else None,
                    "why": one.why,
                    "gap_ms": one.gap_ms,
                }
                for one in found
            ],
        },
        Table(_STAYS, rows, f"the event log has no claim of {fragment}", frozenset({"epoch"})),
    )


def _gap(gap_ms: int | None) -> str:
    return "" if gap_ms is None else span(gap_ms)


def _row(one: Version, owner: str) -> tuple[str, ...]:
    digest = one.record.digest.rpartition(":")[2][:_DIGEST_SHOWN]
    mark = "deployed" if one.deployed else ""
    at = rfc3339(one.record.deployed_at_ms)
    return (str(one.record.version), at, owner, digest, mark, one.changed)

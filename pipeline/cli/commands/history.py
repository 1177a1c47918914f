"""`medusa history`: version history of a network."""

import click

from pipeline.cli.completing import networks
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.clock import rfc3339
from pipeline.deploy.remove import deployed
from pipeline.deploy.versions import Version, history

_COLUMNS = ("version", "deployed at", "by", "digest", "", "what changed")
_DIGEST_SHOWN = 12


@click.command("history")
@click.argument("network", shell_complete=networks)
@click.option(
    "-n",
    "--versions",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How many of the newest.",
)
@with_session
def command(session: Session, network: str, versions: int) -> None:
    """List the versions of NETWORK, the newest first, and what each changed.

    \b
    Examples:
      medusa history tolls
      medusa history tolls -n 100 -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        record = deployed(session.network(network), connections.catalog)
        found = history(record, connections.catalog, versions)
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


def _row(one: Version, owner: str) -> tuple[str, ...]:
    digest = one.record.digest.rpartition(":")[2][:_DIGEST_SHOWN]
    mark = "deployed" if one.deployed else ""
    at = rfc3339(one.record.deployed_at_ms)
    return (str(one.record.version), at, owner, digest, mark, one.changed)

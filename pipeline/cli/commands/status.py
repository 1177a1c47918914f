"""`medusa status`: fragments as they are now."""

import click

from pipeline.cli.commands.deploy import look
from pipeline.cli.completing import networks
from pipeline.cli.connections import Connections
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.status_view import Seen, as_data, as_table, failed
from pipeline.deploy.remove import deployed
from pipeline.errors import ExitCode
from pipeline.ids import NetworkName

_EVERY_S = 1.0


@click.command("status")
@click.argument("network", required=False, shell_complete=networks)
@click.option("--watch", is_flag=True, help="Show it again every second until Ctrl-C.")
@with_session
def command(session: Session, network: str | None, *, watch: bool) -> None:
    """Show the fragments of NETWORK, or of all networks.

    For each: state, node, records in and out, lag in records and how far behind in time, late
    records, dead letters, restarts, last error. `lost` means that its node is gone. If one has
    failed, the exit code is 3.

    \b
    Examples:
      medusa status
      medusa status tolls --watch
      medusa status -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        while True:
            seen = _look(connections, network)
            if watch:
                session.printer.clear()
            session.printer.show({"fragments": [as_data(one) for one in seen]}, as_table(seen))
            if not watch:
                break
            session.clock.sleep(_EVERY_S)
    if failed(seen):
        raise click.exceptions.Exit(ExitCode.FRAGMENT_FAILED)


def _look(connections: Connections, network: str | None) -> tuple[Seen, ...]:
    if network is None:
        names = [record.network for record in connections.catalog.networks.all()]
    else:
        names = [deployed(NetworkName(network), connections.catalog).network]
    return look(connections, names)

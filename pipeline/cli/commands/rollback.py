"""`medusa rollback`: deployment of an earlier version."""

import click

from pipeline.cli.commands.deploy import DeployOptions, deploy_options, run_deploy
from pipeline.cli.completing import networks, versions
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.deploy.remove import deployed
from pipeline.deploy.versions import document_of
from pipeline.ids import NetworkVersion
from pipeline.planner.state import Choices


@click.command("rollback")
@click.argument("network", shell_complete=networks)
@click.option(
    "--to",
    "version",
    type=click.IntRange(min=1),
    required=True,
    metavar="VERSION",
    shell_complete=versions,
    help="The version whose document is deployed again.",
)
@deploy_options
@with_session
def command(
    session: Session,
    network: str,
    version: int,
    choices: Choices,
    timeout: float,
    *,
    dry_run: bool,
    wait: bool,
    yes: bool,
) -> None:
    """Deploy the document and the schemas of an earlier version of NETWORK as a new version.

    Checks and confirmations are those of `deploy`. Records that are published stay.

    \b
    Examples:
      medusa rollback tolls --to 3 --dry-run
      medusa rollback tolls --to 3 --state rebuild
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        record = deployed(session.network(network), connections.catalog)
        document = document_of(record, NetworkVersion(version), connections.catalog)
        options = DeployOptions(choices, dry_run, wait, yes, timeout)
        run_deploy(session, connections, document, options)

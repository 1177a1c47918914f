"""`medusa get`: the document of a deployed network."""

import click

from pipeline.cli.completing import networks, versions
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.clock import rfc3339
from pipeline.deploy.remove import deployed
from pipeline.deploy.versions import version_of
from pipeline.ids import NetworkVersion


@click.command("get")
@click.argument("network", shell_complete=networks)
@click.option(
    "--version",
    "number",
    type=click.IntRange(min=1),
    metavar="N",
    shell_complete=versions,
    help="Which version; default: the one that is deployed.",
)
@with_session
def command(session: Session, network: str, number: int | None) -> None:
    """Print the document of NETWORK as it was deployed, in YAML, whatever it was written in.

    With -o json or -o yaml, when it was deployed and by whom, and the schemas and the Python code
    that were deployed with it, too.

    \b
    Examples:
      medusa get tolls > network.yaml
      medusa get tolls --version 3
      medusa get tolls -o json | jq -r .schemas.sightings
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        record = deployed(session.network(network), connections.catalog)
        version = NetworkVersion(number or record.version)
        found = version_of(record, version, connections.catalog)
    session.printer.show(
        {
            "network": found.network.name,
            "version": found.version,
            "deployed": found.version == record.version,
            "deployed_at": rfc3339(found.deployed_at_ms),
            "by": record.network.participant,
            "digest": found.digest,
            "document": found.document,
            "schemas": dict(found.schemas),
            "code": dict(found.code),
        },
        found.document.rstrip("\n"),
    )

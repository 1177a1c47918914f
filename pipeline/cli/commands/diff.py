"""`medusa diff`: differences between two versions of a network."""

import click

from pipeline.catalog.records import NetworkRecord
from pipeline.cli.colour import marked
from pipeline.cli.completing import networks, versions
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.deploy.remove import deployed
from pipeline.deploy.versions import Difference, difference
from pipeline.errors import RefusedError
from pipeline.ids import NetworkVersion
from pipeline.planner.render import item_lines
from schemas.json_value import JsonObject

_VERSION = click.IntRange(min=1)


@click.command("diff")
@click.argument("network", shell_complete=networks)
@click.option(
    "--from",
    "old",
    type=_VERSION,
    metavar="N",
    shell_complete=versions,
    help="The old version; default: the one before the new one.",
)
@click.option(
    "--to",
    "new",
    type=_VERSION,
    metavar="N",
    shell_complete=versions,
    help="The new version; default: the one that is deployed.",
)
@with_session
def command(session: Session, network: str, old: int | None, new: int | None) -> None:
    """Print the differences between two versions of NETWORK, by fragment, as `plan` does.

    By default, the deployed version is compared with the one before it. For a document that is
    not deployed yet, use `medusa plan`.

    \b
    Examples:
      medusa diff tolls
      medusa diff tolls --from 1
      medusa diff tolls --from 2 --to 4 -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        record = deployed(session.network(network), connections.catalog)
        to = NetworkVersion(new or record.version)
        found = difference(record, _before(record, old, to), to, connections.catalog)
    session.printer.show(_as_data(found), marked("\n".join(_lines(found))))


def _before(record: NetworkRecord, old: int | None, new: NetworkVersion) -> NetworkVersion:
    if old is not None:
        return NetworkVersion(old)
    if new == 1:
        raise RefusedError(
            "there is no version before version 1",
            place=f"network {record.network}",
            hint="give the version to compare with by --from.",
        )
    return NetworkVersion(new - 1)


def _lines(found: Difference) -> list[str]:
    head = f"network {found.network}: from version {found.old} to version {found.new}"
    if found.items:
        return [head, *item_lines(found.items)]
    if found.identical:
        return [head, "both are the same, word for word"]
    return [head, "no fragment differs, but what was deployed does"]


def _as_data(found: Difference) -> JsonObject:
    return {
        "network": found.network.name,
        "from": found.old,
        "to": found.new,
        "identical": found.identical,
        "fragments": [
            {"name": item.name, "action": item.action.value, "reasons": list(item.reasons)}
            for item in found.items
        ],
    }

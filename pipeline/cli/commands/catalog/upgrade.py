"""`medusa catalog upgrade`: upgrade of the stored format to the newest."""

import click

from pipeline.catalog.formats import check_all_read
from pipeline.cli.commands.deploy import confirm
from pipeline.cli.options import with_session
from pipeline.cli.session import Session


@click.command("upgrade")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_session
def command(session: Session, *, yes: bool) -> None:
    """Let the newest format that this version of Medusa knows be written from now on.

    The last step of a move to a newer version: until then all nodes write what the oldest of them
    reads, and any of them can go back to the older version. Refused, with their names, as long as
    nodes are up that do not read it. Afterwards none can go back.

    \b
    Example:
      medusa catalog upgrade
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        catalog = connections.catalog
        before, newest = catalog.format.current(), catalog.format.newest
        if before < newest and not yes:
            check_all_read(newest, catalog.nodes.all())
            session.printer.note(
                f"this raises the format from {before} to {newest}: earlier versions of Medusa "
                "can do nothing with this catalog then"
            )
            confirm(session, "raise it?")
        before = catalog.format.raise_to_newest()
    session.printer.show(
        {"before": before, "format": newest},
        f"the catalog is in format {newest} now; restart the nodes, so that they write it"
        if before < newest
        else f"the catalog is in format {newest}, the newest that this version knows",
    )

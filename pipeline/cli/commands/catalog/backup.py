"""`medusa catalog backup`: backup of the catalog into a file."""

from pathlib import Path

import click

from pipeline.catalog.backup import dumps, read
from pipeline.cli.new_file import write_new
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.counting import counted


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@with_session
def command(session: Session, file: Path) -> None:
    """Write all networks with their versions, the epochs and our registry's schemas into FILE.

    It can be done while everything runs. Records, commit markers and dead letters are in Kafka and
    are not in the file; nor is the status of nodes and fragments. FILE must not exist.

    \b
    Example:
      medusa catalog backup medusa-catalog.json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        _ = connections.catalog  # creates an empty one, and rejects one that is too new
        backup = read(connections.store, session.clock.now_ms())
    write_new(file, (dumps(backup),))
    counts = f"{counted(len(backup.networks), 'network')}, {counted(backup.schemas, 'schema')}"
    session.printer.show(
        {
            "file": str(file),
            "networks": [network.full_name for network in backup.networks],
            "schemas": backup.schemas,
            "entries": len(backup.entries),
        },
        f"wrote {file}: {counts}, {len(backup.entries)} entries",
    )

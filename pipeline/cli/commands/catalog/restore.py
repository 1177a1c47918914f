"""`medusa catalog restore`: restore of the catalog from a backup file."""

from pathlib import Path

import click

from pipeline.catalog.backup import Backup, loads
from pipeline.cli.commands.deploy import confirm
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.clock import rfc3339
from pipeline.counting import counted
from pipeline.errors import RefusedError
from pipeline.operations.restore import restore_catalog


@click.command("restore")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Only say what the file holds.")
@with_session
def command(session: Session, file: Path, *, yes: bool, dry_run: bool) -> None:
    """Bring back the networks, epochs and schemas that `medusa catalog backup` wrote into FILE.

    The catalog must not contain other entries in their places; existing ones stay. Fragments then
    continue from their commit markers in Kafka, also if they ran after the backup was made. What
    was deployed or registered later is not in the file: deploy it again, and register schemas in
    the order in which they were, so that they get the ids that records carry.

    \b
    Examples:
      medusa catalog restore medusa-catalog.json --dry-run
      medusa catalog restore medusa-catalog.json --yes
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    backup = loads(_text(file), str(file))
    changed = 0
    if not dry_run:
        with session.connect() as connections:
            if not yes:
                session.printer.note(_summary(backup, "this restores"))
                confirm(session, "restore it?")
            changed = restore_catalog(backup, connections)
    session.printer.show(
        {
            "made_at": rfc3339(backup.made_at_ms),
            "networks": [network.full_name for network in backup.networks],
            "schemas": backup.schemas,
            "entries": len(backup.entries),
            "changed": changed,
            "dry_run": dry_run,
        },
        _summary(backup, "would restore" if dry_run else "restored"),
    )


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise RefusedError(f"the file cannot be read: {why}", place=str(file)) from error


def _summary(backup: Backup, before: str) -> str:
    networks = counted(len(backup.networks), "network")
    names = ", ".join(network.full_name for network in backup.networks)
    named = f" ({names})" if names else ""
    return (
        f"{before} {networks}{named} and {counted(backup.schemas, 'schema')} as of "
        f"{rfc3339(backup.made_at_ms)}"
    )

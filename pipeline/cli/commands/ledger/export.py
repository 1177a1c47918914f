"""`medusa ledger export`: a ledger as a file."""

from pathlib import Path

import click

from pipeline.cli.contracts import negotiating, trust_option
from pipeline.cli.new_file import write_new
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.ledger.file import write_ledger
from pipeline.operations.contracts.ledgers import Ledgers


@click.command("export")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--remove",
    is_flag=True,
    help="Remove the exported entries from your copy in the catalog; keep the file.",
)
@trust_option
@with_session
def command(session: Session, name: str, file: Path, *, remove: bool, yes: bool) -> None:
    """Verify the ledger of contract NAME, and write your copy into FILE, one entry a line.

    FILE must not exist. It contains every signature, so that anybody who has the public keys and
    the contract can verify it. What is owed remains in the catalog when entries are removed.

    \b
    Examples:
      medusa ledger export load-2027 load-2027.jsonl
      medusa ledger export load-2027 load-2027-1.jsonl --remove
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    removed = 0
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        key = contracts.find(name)
        ledger = Ledgers(contracts).file(key)
        write_new(file, (write_ledger(ledger),))
        if remove:
            parties = contracts.parties
            removed = parties.catalog.ledgers.remove_up_to(parties.party, key, ledger.end)
    session.printer.show(
        {
            "contract": key.contract,
            "file": str(file),
            "entries": len(ledger.lines),
            "removed": removed,
        },
        f"wrote {file}: entries {ledger.start.count + 1} to {ledger.end.count}"
        f"{f', {removed} removed from the catalog' if remove else ''}",
    )

"""`medusa contract verify`: verification of a contract's documents."""

import click

from pipeline.cli.contracts import as_data, negotiating, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.counting import counted
from pipeline.operations.contracts.negotiating import existing


@click.command("verify")
@click.argument("name")
@trust_option
@with_session
def command(session: Session, name: str, *, yes: bool) -> None:
    """Verify every document of contract NAME: its signature, its key, and the one it follows.

    The first wrong one is named, and the exit code is 65.

    \b
    Example:
      medusa contract verify load-2027
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        found, signer, _ = contracts.read(contracts.find(name))
    contract = existing(found.at(signer.now_ms))
    documents = counted(len(contract.documents), "document")
    signers = " and ".join(sorted({one.by for one in contract.documents}))
    session.printer.show(
        as_data(contract),
        f"{documents} of {contract.contract}, signed by {signers}, are right: "
        f"it is {contract.state.value}",
    )

"""`medusa ledger confirm`: signature of an entry that the partner has signed."""

import click

from pipeline.cli.commands.deploy import confirm
from pipeline.cli.contracts import negotiating
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.documents.terms_json import decimal_text
from pipeline.contracts.ledger.entries import Payment
from pipeline.contracts.ledger.signed_entry import SignedEntry
from pipeline.operations.contracts.settling import Settling


@click.command("confirm")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_session
def command(session: Session, name: str, *, yes: bool) -> None:
    """Sign the entry of contract NAME that waits for you: a payment that you have received.

    It is verified first, and shown. An answer to an invoice of yours is signed as well.

    \b
    Example:
      medusa ledger confirm load-2027
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        key, settling = contracts.find(name), Settling(contracts)
        waiting = settling.waiting(key)
        signed = None
        if waiting is not None:
            session.printer.note(_text(waiting))
            if not yes:
                confirm(session, "sign it?")
            signed = settling.countersign(key, waiting)
    number = signed.entry.place.number if signed else None
    session.printer.show(
        {"contract": key.contract, "signed": number},
        f"entry {number} of {key.contract} is signed by both"
        if signed
        else f"nothing of {key.contract} waits for your signature",
    )


def _text(waiting: SignedEntry) -> str:
    entry = waiting.entry
    number, amount = entry.place.number, entry.amount
    money = f"{decimal_text(amount.amount)} {amount.currency}"
    if isinstance(entry, Payment):
        return f"entry {number}: {entry.payer} has paid {money}, {entry.reference!r}"
    return f"entry {number}: {money} for load"

"""`medusa ledger pay`: record of a payment to the partner."""

import click

from pipeline.cli.contracts import negotiating, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.contracts.documents.terms_json import decimal_text, read_decimal
from pipeline.contracts.money import Money
from pipeline.errors import UsageError
from pipeline.operations.contracts.settling import Settling


@click.command("pay")
@click.argument("name")
@click.argument("amount")
@click.option("--reference", default="", metavar="TEXT", help="Of the transfer, in one line.")
@trust_option
@with_session
def command(session: Session, name: str, amount: str, reference: str, *, yes: bool) -> None:
    """Record that you have paid AMOUNT to the partner of contract NAME, in its currency.

    Medusa transfers no money. The payment counts once the partner has confirmed it with `medusa
    ledger confirm`.

    \b
    Example:
      medusa ledger pay load-2027 12.50 --reference "invoice 3"
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    try:
        number = read_decimal(amount)
    except ValueError as error:
        raise UsageError(f"AMOUNT: {error}") from error
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        key = contracts.find(name)
        contract, _, _ = contracts.read(key)
        money = Money(contract.latest.contract.price.currency, number)
        signed = Settling(contracts).pay(key, money, reference)
    session.printer.show(
        {
            "contract": key.contract,
            "entry": signed.entry.place.number,
            "amount": decimal_text(money.amount),
            "currency": money.currency,
        },
        f"entry {signed.entry.place.number} of {key.contract}: {money} paid; "
        f"waits for {key.partner}",
    )

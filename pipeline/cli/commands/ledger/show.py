"""`medusa ledger show`: statement of a contract, or accounts with all partners."""

import click

from pipeline.cli.contracts import negotiating, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.contracts.documents.terms_json import decimal_text
from pipeline.contracts.ledger.statements import Account, balances
from pipeline.operations.contracts.ledgers import Ledger, Ledgers
from schemas.json_value import Encodable, JsonObject

_TASKS = ("task", "paid_units", "disputed_units", "amount")
_ACCOUNTS = ("buyer", "seller", "currency", "opening", "charged", "paid", "owed")


@click.command("show")
@click.argument("name", required=False)
@trust_option
@with_session
def command(session: Session, name: str | None, *, yes: bool) -> None:
    """Show what was settled of contract NAME, by task; without NAME, what is owed to whom.

    Only entries that both have signed count; one that one side has not signed owes nothing.

    \b
    Examples:
      medusa ledger show
      medusa ledger show load-2027
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        ledgers = Ledgers(contracts)
        if name is None:
            _show_accounts(session, *ledgers.accounts())
            return
        found = ledgers.read(contracts.find(name))
    for problem in found.problems:
        session.printer.note(f"wrong: {problem}")
    _show_statement(session, found)


def _show_accounts(
    session: Session, accounts: tuple[Account, ...], problems: tuple[str, ...]
) -> None:
    for problem in problems:
        session.printer.note(f"wrong: {problem}")
    rows: list[JsonObject] = [
        {
            "buyer": one.buyer,
            "seller": one.seller,
            "currency": one.currency,
            "opening": decimal_text(one.opening),
            "charged": decimal_text(one.charged),
            "paid": decimal_text(one.paid),
            "owed": decimal_text(one.owed),
        }
        for one in accounts
    ]
    cells = tuple(tuple(str(row[name]) for name in _ACCOUNTS) for row in rows)
    table = Table(_ACCOUNTS, cells, "no contract was agreed on", frozenset(_ACCOUNTS[3:]))
    totals: list[JsonObject] = [
        {"party": party, "currency": currency, "balance": decimal_text(amount)}
        for (party, currency), amount in sorted(balances(accounts).items())
    ]
    data: dict[str, Encodable] = {"accounts": rows, "balances": totals, "problems": list(problems)}
    session.printer.show(data, table)


def _show_statement(session: Session, found: Ledger) -> None:
    statement, stored = found.statement, found.own.stored
    currency = found.contract.agreed[-1].contract.price.currency
    rows: list[JsonObject] = [
        {
            "task": one.task,
            "paid_units": decimal_text(one.paid),
            "disputed_units": decimal_text(one.disputed),
            "amount": decimal_text(one.amount),
        }
        for one in statement.tasks
    ]
    data: dict[str, Encodable] = {
        "contract": found.contract.contract,
        "currency": currency,
        "entries": len(found.own.lines),
        "removed": stored.start.count,
        "periods": statement.periods,
        "waiting": len(stored.invoices) + len(found.partner.stored.invoices),
        "opening": decimal_text(statement.opening),
        "charged": decimal_text(statement.charged),
        "paid": decimal_text(statement.paid),
        "owed": decimal_text(statement.owed),
        "tasks": rows,
        "problems": list(found.problems),
    }
    cells = [tuple(str(row[name]) for name in _TASKS) for row in rows]
    if cells:
        cells.append(("total", "", "", f"{data['charged']} {currency}"))
        cells.append(("owed", "", "", f"{data['owed']} {currency}"))
    table = Table(_TASKS, tuple(cells), "nothing was settled yet", frozenset(_TASKS[1:]))
    session.printer.show(data, table)

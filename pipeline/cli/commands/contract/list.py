"""`medusa contract list`: list of the participant's contracts."""

import click

from pipeline.cli.contracts import as_data, negotiating, next_step, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.clock import rfc3339
from pipeline.operations.contracts.negotiating import Listed
from schemas.json_value import Encodable

_COLUMNS = ("contract", "partner", "role", "state", "price", "until", "remark")


@click.command("list")
@trust_option
@with_session
def command(session: Session, *, yes: bool) -> None:
    """Show all contracts of the participant, also those that partners propose to it.

    \b
    Example:
      medusa contract list
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        found = negotiating(session, connections, yes=yes).list()
    me = str(session.participant)
    rows = tuple(_row(one, me) for one in found)
    data: list[Encodable] = [
        {
            "partner": one.key.partner,
            "contract": one.key.contract,
            "problem": one.problem,
            **(as_data(one.contract) if one.contract else {}),
        }
        for one in found
    ]
    session.printer.show({"contracts": data}, Table(_COLUMNS, rows, "there is no contract"))


def _row(one: Listed, me: str) -> tuple[str, ...]:
    if one.contract is None:
        return (one.key.contract, one.key.partner, "", "wrong", "", "", one.problem)
    contract = one.contract.latest.contract
    price = contract.price
    span = f"{price.lowest}-" if price.span else ""
    return (
        one.key.contract,
        one.key.partner,
        "buyer" if contract.buyer == me else "seller",
        one.contract.state.value,
        f"{span}{price.highest} {price.currency}",
        rfc3339(one.contract.until_ms or contract.until_ms),
        next_step(one.contract, me),
    )

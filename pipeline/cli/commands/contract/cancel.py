"""`medusa contract cancel`: end of a negotiation or a contract."""

import click

from pipeline.cli.contracts import negotiating, show_signed, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session


@click.command("cancel")
@click.argument("name")
@click.option("--reason", default="", metavar="TEXT", help="Why, in one line; the partner sees it.")
@trust_option
@with_session
def command(session: Session, name: str, reason: str, *, yes: bool) -> None:
    """Withdraw or reject a proposal, or end contract NAME after its notice.

    A contract goes on until the notice that its terms name is over, or until its end.

    \b
    Example:
      medusa contract cancel load-2027 --reason "the machines are needed here"
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        found = contracts.cancel(contracts.find(name), reason)
        show_signed(session, connections, found, "is cancelled")

"""`medusa contract accept`: acceptance of a proposal."""

import click

from pipeline.cli.contracts import negotiating, show_signed, trust_option
from pipeline.cli.options import with_session
from pipeline.cli.session import Session


@click.command("accept")
@click.argument("name")
@trust_option
@with_session
def command(session: Session, name: str, *, yes: bool) -> None:
    """Accept what the partner has proposed for contract NAME: both have signed then.

    The documents are verified first. Read the terms before: `medusa contract show NAME`. If the
    partner changes or withdraws its proposal at the same time, nothing is signed.

    \b
    Example:
      medusa contract accept load-2027
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        contracts = negotiating(session, connections, yes=yes)
        found = contracts.accept(contracts.find(name))
        show_signed(session, connections, found, "is accepted")

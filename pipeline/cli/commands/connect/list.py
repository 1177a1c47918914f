"""`medusa connect list`: the kinds of connectors."""

import click

from connectors.kinds import kinds
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table


@click.command("list")
@with_session
def command(session: Session) -> None:
    """List the kinds of connectors, with what each guarantees.

    \b
    Examples:
      medusa connect list
      medusa connect list -o json
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    found = tuple(kinds().values())
    rows = [
        {
            "name": kind.name,
            "direction": kind.direction,
            "guarantee": kind.guarantee.value,
            "summary": kind.summary,
            "needs": list(kind.needs),
        }
        for kind in found
    ]
    table = Table(
        ("name", "direction", "guarantee", "what"),
        tuple((k.name, k.direction, k.guarantee.value, k.summary) for k in found),
    )
    session.printer.show({"connectors": rows}, table)

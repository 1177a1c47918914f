"""`medusa transfers`: list of the moves that are not done."""

import click

from pipeline.cli.commands.move import moves_of
from pipeline.cli.options import with_session
from pipeline.cli.session import Session
from pipeline.cli.table import Table
from pipeline.clock import rfc3339
from schemas.json_value import JsonObject


@click.command("transfers")
@with_session
def command(session: Session) -> None:
    """Show the moves of fragments that are not done, and how far each is.

    wanted: the target builds the state. ready: it is level, and the owner stops after its batch.
    released: the target starts it. over: it has no effect any more.

    \b
    Example:
      medusa transfers
    """  # noqa: D301 - \b is click's mark for text that is not wrapped
    with session.connect() as connections:
        found = moves_of(connections, session).all()
    rows: list[JsonObject] = [
        {
            "fragment": str(one.id),
            "from": one.source,
            "to": one.to,
            "step": step.value,
            "asked_at": rfc3339(one.asked_at_ms),
            "until": rfc3339(one.until_ms),
            "problem": one.problem,
        }
        for one, step in found
    ]
    columns = ("fragment", "from", "to", "step", "asked_at", "until", "problem")
    cells = tuple(tuple(str(row[column]) for column in columns) for row in rows)
    session.printer.show({"transfers": rows}, Table(columns, cells, "no fragment moves"))
